"""What every test gets: a data directory of its own, asyncio, hypothesis profiles, the leak check, forks."""

import gc
import itertools
import os
import signal
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test as is_property
from hypothesis import settings

pytest_plugins = ["tests.forks", "tests.leaks"]

# No deadline: the machine that runs the tests is shared, and a slow example is not a wrong one.
settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell that starts the tests in the background has SIGINT ignored, and children inherit that: none would hear Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

_homes = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--histories", type=int, default=1_000, help="random histories of the scheduler to play")
    parser.addoption("--examples", type=float, default=0.2, help="the share of each property's examples to try")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Try a share of the examples that each property asks for; `.ci/run` has a step that tries all of them."""
    share: float = config.getoption("examples")
    properties = {item.function for item in items if isinstance(item, pytest.Function) and is_property(item.function)}
    for tested in properties:  # once, for it may be many items
        asked: settings = tested._hypothesis_internal_use_settings  # which hypothesis' own plugin sets, too
        count = max(1, round(asked.max_examples * share))
        tested._hypothesis_internal_use_settings = settings(asked, max_examples=count)


def pytest_collection_finish() -> None:
    """Leave what is loaded by now out of every collection: it is most of the heap, and stays to the end. A collection
    of all of it takes 0.3 s, which runs under memory pressure ask for again and again, and copies its pages in forks.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def _homes_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def headrace_home(_homes_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where run files without a path go; not made beforehand, as on a user's first day."""
    home = _homes_directory / str(next(_homes))
    monkeypatch.setenv("HEADRACE_HOME", str(home))
    return home


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
