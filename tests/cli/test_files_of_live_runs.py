"""Copying, exporting, merging and compacting a run file while another process writes it as fast as it can."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace import Results
from headrace.store.run_file.merging.merging import merge_run_files
from headrace.store.whole_files import verify
from tests.cli import forked
from tests.cli.live import command
from tests.cli.terminals import environment
from tests.forks import Forks


@pytest.fixture
def live(tmp_path: Path, forks: Forks) -> Iterator[Path]:
    path = tmp_path / "live.run"
    words = ("demo", "--size", "60000", "-o", str(path))
    process = subprocess.Popen(command(*words), env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 60
    while done(path) < 1_000 and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    yield path
    process.send_signal(signal.SIGKILL)
    process.wait()


def done(path: Path) -> int:
    if not path.exists():
        return 0
    with Results.open(path) as results:
        return results.stats().interviews


def headrace(*words: str | Path) -> "subprocess.CompletedProcess[str]":
    ended = forked.headrace(Path.cwd(), *map(str, words), environment=environment())
    assert "Traceback" not in ended.stderr
    return ended


def test_files_of_a_run_that_goes_on_are_of_one_moment(live: Path, tmp_path: Path):
    refused = headrace("compact", live)
    assert (refused.returncode, "is being written by another run" in refused.stderr) == (1, True)
    copies = [tmp_path / f"copy{number}.run" for number in range(2)]
    for copy in copies:
        before = done(live)
        assert headrace("copy", live, copy).returncode == 0
        assert before <= done(copy) <= done(live)
        assert verify(copy).findings == {}
    before = done(live)
    assert headrace("export", live, "-o", tmp_path / "out.csv", "--select", "interview.ordinal").returncode == 0
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert before <= len(lines) - 1 == len(set(lines)) - 1 <= done(live)
    made = merge_run_files([copies[0], live], tmp_path / "merged.run")
    assert done(copies[1]) <= made.interviews <= done(live)
    assert made.in_several == done(copies[0])
    assert verify(tmp_path / "merged.run").findings == {}
    with Results.open(tmp_path / "merged.run") as results:
        assert results.stats().calls <= 3 * made.interviews  # of copies of one file each call counts once
