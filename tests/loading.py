"""Has the processes of a whole run share the loading of test modules.

Covers: the first load after a change, when pytest rewrites the assertions of a module and keeps its byte code. All
modules take one process 25 s, and 8 s where their byte code is kept. Processes that begin together would each rewrite
every module: each begins with another one, so that it finds most of them rewritten. Does not cover: a run of some
tests, which loads what it needs.
"""

import importlib
import os
from contextlib import suppress
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def pytest_collection(session: pytest.Session) -> None:
    name, count = os.environ.get("PYTEST_XDIST_WORKER"), os.environ.get("PYTEST_XDIST_WORKER_COUNT")
    if name is None or count is None or session.config.args != session.config.getini("testpaths"):
        return
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    first = len(files) * int(name.removeprefix("gw")) // int(count)
    for file in files[first:] + files[:first]:
        with suppress(Exception):  # pytest loads it again and reports why it cannot be
            importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts))
