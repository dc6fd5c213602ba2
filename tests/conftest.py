"""What every test gets: a data directory, asyncio, hypothesis profiles, the leak check, forks, shared loading."""

import gc
import itertools
import os
import signal
from pathlib import Path

import pytest
from hypothesis import is_hypothesis_test as is_property
from hypothesis import settings

pytest_plugins = ["tests.forks", "tests.leaks", "tests.loading"]

# No deadline: the machine that runs the tests is shared, and a slow example is not a wrong one.
settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell that starts the tests in the background has SIGINT ignored, and children inherit that: none would hear Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Set, it would hide what is written to a pipe and not flushed.
os.environ.pop("PYTHONUNBUFFERED", None)

_homes = itertools.count()

# Each takes more than 20 s. They begin first: side by side, a file at a time, one that began last would end alone.
LONGEST = [
    "interviews/workers/test_survey_workers.py",
    "interviews/services/test_address_files.py",
    "web/browser/test_every_page.py",
    "trouble/test_stopping.py",
    "trouble/test_memory.py",
    "models/test_local.py",
    "interviews/test_contract.py",
    "cli/test_steering.py",
    "agents/engine/test_lending_by_priority.py",
    "trouble/test_killed_totals.py",
    "agents/engine/test_isolated_agents.py",
    "interviews/test_ctrl_c.py",
    "agents/engine/test_calls_in_flight.py",
    "agents/nodes/test_engines_on_nodes.py",
    "agents/engine/test_blocking_heartbeats.py",
    "trouble/test_killed_runs.py",
    "interviews/workers/test_paid_calls.py",
    "store/test_live_file.py",
    "agents/test_agent_contract.py",
    "workers/test_workers.py",
    "workers/warden/test_memory_limits.py",
    "results/test_runaway_queries.py",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--histories", type=int, default=1_000, help="random histories of the scheduler to play")
    parser.addoption("--examples", type=float, default=0.2, help="the share of each property's examples to try")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the longest files. Try a share of the examples that each property asks for; `.ci/run` has a step that
    tries all of them.
    """
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
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
