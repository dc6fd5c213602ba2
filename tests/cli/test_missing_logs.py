"""A run file without the log that a killed run has left beside it: what lists say of it, and what its copy holds."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.forked import headrace
from tests.cli.live import SURVEY, endless, live

pytestmark = pytest.mark.usefixtures("forks")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data directory whose only run file lacks its log."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "s.yaml").write_text(SURVEY)
    path = tmp_path / "runs" / "a.run"
    with live(tmp_path, *endless("runs/a.run", interviews=1_000)) as run:
        run.state_once(path, done=5)
        run.kill()
    (tmp_path / "runs" / "a.run-wal").unlink()
    return tmp_path


def test_lists_say_that_the_log_is_missing(home: Path):
    environment = {**os.environ, "HEADRACE_HOME": str(home)}
    listed = headrace(home, "runs", environment=environment)
    assert (listed.returncode, "log missing" in listed.stdout) == (0, True)
    (told,) = json.loads(headrace(home, "runs", "--json", environment=environment).stdout)
    assert told["is_log_missing"]
    top = headrace(home, "top", environment=environment)
    assert (top.returncode, top.stderr) == (0, "")
    assert "log missing" in top.stdout
    assert "a.run-wal is missing" in top.stdout
    assert "damaged" not in top.stdout


def test_a_copy_without_the_log_says_what_it_holds(home: Path):
    copied = headrace(home, "copy", "runs/a.run", "b.run", "--without-log")
    assert copied.returncode == 0
    counted = copied.stdout.splitlines()[-1]
    status = headrace(home, "status", "b.run").stdout
    assert f"b.run: {counted.removeprefix('it holds ')}, 0 failed" in status
    assert counted.endswith(" of 1,000 interviews")
