"""What every test gets: a data directory of its own, asyncio, hypothesis profiles, the leak check."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["tests.leaks"]

# No deadline: the machine that runs the tests is shared, and a slow example is not a wrong one.
settings.register_profile("default", deadline=None, max_examples=60)
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

_homes = itertools.count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--histories", type=int, default=2_000, help="random histories of the scheduler to play")


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
