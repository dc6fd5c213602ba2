"""Reading a run file while another process writes it."""

import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

from headrace.results.results import Results
from headrace.store.run_file.rows import row_batch
from headrace.survey.agent import Agent
from tests.results import files

PEOPLE = 3_000
WRITER = f"""
import sys
from pathlib import Path
from headrace.store.run_file.rows import row_batch
from tests.results import files, test_live

with files.opened(Path(sys.argv[1]), test_live.job()) as file:
    print("open", flush=True)
    sys.stdin.readline()
    for first in range(0, {PEOPLE}, 50):
        rows = [files.row(file, test_live.job(), n, test_live.answers(n)) for n in range(first, first + 50)]
        file.journal.commit([row_batch(rows)], [])
    print("written", flush=True)
    sys.stdin.readline()
"""


@cache
def job() -> files.Job:
    return files.job(files.survey("number"), [Agent({"n": n}) for n in range(PEOPLE)])


def answers(ordinal: int) -> list[object]:
    """Whole numbers first, later texts: what the column holds widens while it is read."""
    return [ordinal if ordinal < PEOPLE // 2 else f"late {ordinal}"]


def _writer(path: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={"PYTHONPATH": f"{root}:{root / 'src'}"},
    )


def _say(writer: subprocess.Popen[str], line: str) -> None:
    assert writer.stdin is not None
    writer.stdin.write(line)
    writer.stdin.flush()


def _hear(writer: subprocess.Popen[str]) -> str:
    assert writer.stdout is not None
    return writer.stdout.readline().strip()


def test_results_can_be_read_while_another_process_writes_them(tmp_path: Path) -> None:
    path = tmp_path / "live.run"
    writer = _writer(path)
    with writer:
        assert _hear(writer) == "open"
        with Results.open(path) as results:
            assert len(results) == 0
            small, lengths, seen = results.filter("number < 100"), [0], 0
            _say(writer, "go\n")
            while lengths[-1] < PEOPLE:
                lengths.append(len(results))
                for result in results:
                    assert result.answer["number"] == answers(result.ordinal)[0]
                    seen += 1
                assert all(found.ordinal < 100 for found in small)
                assert all(row["answer.number"] == row["agent.n"] for row in small.to_dicts(remove_prefix=False))
            assert lengths == sorted(lengths)
            assert seen >= PEOPLE
            assert [found.ordinal for found in small] == list(range(100))
            assert len(results.filter("number > 'late'")) == PEOPLE // 2
            assert _hear(writer) == "written"
        _say(writer, "end\n")
    assert writer.returncode == 0


def test_an_iteration_left_standing_does_not_keep_the_wal_from_being_reset(tmp_path: Path) -> None:
    path = tmp_path / "wal.run"
    of = job()
    with files.opened(path, of) as file:
        file.journal.commit([row_batch([files.row(file, of, n, answers(n)) for n in range(1_000)])], [])
        with Results.open(path) as results:
            standing = [iter(results), iter(results.sort_by("number")), iter(results.sql("select 1 from self"))]
            for iterator in standing:
                next(iterator)
            busy = file.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0]
            assert busy == 0
            assert (tmp_path / "wal.run-wal").stat().st_size == 0
            for iterator in standing:
                iterator.close()


def test_a_thread_of_the_writing_process_may_read_too(tmp_path: Path) -> None:
    path = tmp_path / "same.run"
    of = job()
    counts: list[int] = []

    def read() -> None:
        with Results.open(path) as results:
            while not counts or counts[-1] < PEOPLE:
                counts.append(sum(1 for _ in results.filter("agent.n >= 0")))

    with files.opened(path, of) as file:
        reader = threading.Thread(target=read)
        reader.start()
        for first in range(0, PEOPLE, 100):
            rows = [files.row(file, of, n, answers(n)) for n in range(first, first + 100)]
            file.journal.commit([row_batch(rows)], [])
        reader.join()
    assert counts == sorted(counts)


def test_a_reader_stays_small_and_holds_no_transaction_while_another_process_writes(tmp_path: Path) -> None:
    """Every way of reading, again and again, beside a writer; what one reading holds, all of them may hold."""
    path = tmp_path / "small.run"
    writer = _writer(path)
    with writer:
        assert _hear(writer) == "open"
        with Results.open(path) as results:
            _say(writer, "go\n")
            seen, held = 0, [_resident_bytes()]
            while seen < PEOPLE:
                seen = len(results)
                assert sum(1 for _ in results) >= seen
                assert sum(len(batch[0]) for batch in results.select("number", "agent.n")._batches()) >= seen
                held.append(_resident_bytes())
            assert _hear(writer) == "written"
            for _ in range(20):
                assert sum(bool(result.prompts) for result in results) == PEOPLE
            assert _resident_bytes() - held[0] < 40_000_000
            assert max(held) - held[0] < 40_000_000
        _say(writer, "end\n")
    assert writer.returncode == 0
    assert not (tmp_path / "small.run-wal").exists()  # no reader kept it from being gathered


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * 4096
