"""How exports end: killed, interrupted, and what a terminal shows meanwhile."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.progress.pace import Pace, Progress
from headrace.results.export import export_progress
from headrace.results.export.export_progress import watched
from headrace.results.results import Results
from tests.results import files

_SLOW = """
import sys, time
from headrace.results.results import Results
results = Results.open(sys.argv[1]).select("answer.rating", "agent.age")
def slow(read=results._batches):
    yield from read()
    print("begun", flush=True)
    time.sleep(60)
results._batches = slow
getattr(results, sys.argv[2])(sys.argv[3])
"""


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    return files.city(tmp_path / "x.run")


def begun_export(run_file: Path, method: str, target: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _SLOW, str(run_file), method, str(target)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize("method", ["to_csv", "to_jsonl", "to_parquet"])
def test_a_killed_export_leaves_what_was_there(run_file: Path, tmp_path: Path, method: str) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    (place / "out").write_text("what was there")
    with begun_export(run_file, method, place / "out") as process:
        process.send_signal(signal.SIGKILL)
    assert (place / "out").read_text() == "what was there"
    assert all(path.name == "out" or path.name.endswith(".part") for path in place.iterdir())


@pytest.mark.parametrize("method", ["to_csv", "to_jsonl", "to_parquet"])
def test_an_interrupted_export_removes_what_it_wrote(run_file: Path, tmp_path: Path, method: str) -> None:
    place = tmp_path / "exports"
    place.mkdir()
    with begun_export(run_file, method, place / "out") as process:
        process.send_signal(signal.SIGINT)
    assert process.returncode in (-signal.SIGINT, 1)
    assert list(place.iterdir()) == []


_DRAWS = """
import sys
from headrace.results.export import export_progress
from headrace.results.results import Results
export_progress._SHOWN_AFTER_S = float(sys.argv[2])
with Results.open(sys.argv[1]) as results:
    results.to_csv(sys.argv[1] + ".csv")
"""


def at_a_terminal(run_file: Path, after_s: float) -> bytes:
    """What the export writes to a terminal on standard error."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    command = [sys.executable, "-c", _DRAWS, str(run_file), str(after_s)]
    try:
        subprocess.run(command, stderr=theirs, stdout=theirs, check=True, timeout=120, env=environment)
        os.close(theirs)
        return b"".join(iter(lambda: _read(ours), b""))
    finally:
        os.close(ours)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # the other side is closed
        return b""


def test_a_long_export_shows_at_a_terminal_how_far_it_is(run_file: Path) -> None:
    shown = at_a_terminal(run_file, 0.0).decode()
    assert "40/40" in shown
    assert "in flight" not in shown


def test_a_short_export_and_one_without_a_terminal_print_nothing(run_file: Path) -> None:
    assert at_a_terminal(run_file, 1_000.0) == b""
    command = [sys.executable, "-c", _DRAWS, str(run_file), "0"]
    ran = subprocess.run(command, capture_output=True, check=True, timeout=120)
    assert (ran.stdout, ran.stderr) == (b"", b"")


class _Canvas:
    every_s, window_s = 0.0, 15.0

    def __init__(self) -> None:
        self.drawn: list[tuple[int, int]] = []
        self.is_closed = False

    def draw(self, progress: Progress, pace: Pace) -> None:
        self.drawn.append((progress.done, progress.total))

    def close(self) -> None:
        self.is_closed = True


def seconds() -> Iterator[float]:
    return (0.4 * tick for tick in range(1_000))


def test_the_line_comes_after_a_second_and_ends_with_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    canvas, clock = _Canvas(), seconds()
    monkeypatch.setattr(export_progress, "canvas_for", lambda _: canvas)
    batches: list[list[list[Any]]] = [[[1] * 10]] * 5
    assert list(watched(iter(batches), lambda: 40, lambda: next(clock))) == batches
    assert canvas.drawn[0] == (30, 40)
    assert canvas.drawn[-1] == (50, 50)  # a run that goes on has added ten meanwhile
    assert canvas.is_closed


def test_rows_that_are_not_counted_have_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    canvas, clock = _Canvas(), seconds()
    monkeypatch.setattr(export_progress, "canvas_for", lambda _: canvas)
    assert len(list(watched(iter([[[1]]] * 9), lambda: None, lambda: next(clock)))) == 9
    assert canvas.drawn == []


def test_an_export_of_a_live_file_has_the_rows_of_its_moment(tmp_path: Path) -> None:
    path = tmp_path / "live.run"
    of = files.job(files.survey("q"), [files.Agent({"n": n}) for n in range(9)])
    files.write(path, of, lambda n: [n], range(4))
    with files.opened(path, of) as file, Results.open(path) as results:
        assert results.select("q").to_arrow().column("answer.q").to_pylist() == [0, 1, 2, 3]
        file.journal.commit([files.row_batch([files.row(file, of, 4, ["late"])])], [])
        table = results.select("q").to_arrow()
        assert table.column("answer.q").to_pylist() == ["0", "1", "2", "3", '"late"']
        assert results.select("q").to_polars()["answer.q"].to_list()[-1] == '"late"'
        assert results.select("q").to_pandas()["answer.q"].tolist() == [0, 1, 2, 3, "late"]
