import time
from pathlib import Path

import apsw
import pytest

from headrace import Results
from headrace.errors import HeadraceError
from tests.trouble.children import Child, run_child, until
from tests.trouble.programs.letters import letter
from tests.trouble.programs.town import CITIES, expected

pytestmark = pytest.mark.usefixtures("forks")

MB = 1_000_000


def can_be_read(path: Path) -> bool:
    """Whether the file is there and set up; before that it is an error that says so, and never anything else."""
    try:
        Results.open(path).close()
    except HeadraceError:
        return False
    return True


def test_a_reader_in_another_process_sees_a_growing_number_of_whole_results(tmp_path: Path) -> None:
    path, agents = tmp_path / "town.run", 40
    counts: list[int] = []
    with Child("run_town", path, agents, 0.01, 6) as child:
        child.wait_until_told()
        until(lambda: can_be_read(path) or not child.is_alive, "the file")
        while child.is_alive:
            with Results.open(path) as results:
                counts.append(len(results))
                read = [(result.ordinal, result.answer, len(result.prompts)) for result in results]
                after = len(results)
            assert counts[-1] <= len(read) <= after
            assert [ordinal for ordinal, _, _ in read] == sorted({ordinal for ordinal, _, _ in read})
            for ordinal, answer, prompts in read:
                assert answer == expected(ordinal)
                assert prompts >= 6
        assert child.ended()[-1]["error"] is None
    assert counts == sorted(counts)
    assert len(set(counts)) >= 5, f"it saw the run grow only so often: {counts}"
    with Results.open(path) as results:
        assert [result.answer for result in results] == [expected(n) for n in range(agents * len(CITIES))]


def test_a_reader_that_looks_while_the_file_is_made_does_not_disturb(tmp_path: Path) -> None:
    path, rows = tmp_path / "rows.run", tmp_path / "rows.csv"
    rows.write_text("number\n" + "".join(f"{number}\n" for number in range(60_000)))
    with Child("run_rows", path, rows, 50) as child:
        until(lambda: can_be_read(path) or not child.is_alive, "the file", every_s=0.0)
        assert child.ended()[-1] == {"error": None, "message": "", "kinds": []}
    with Results.open(path) as results:
        assert [result.answer["echo"] for result in results] == [f"it is {number}" for number in range(50)]


def test_a_run_goes_on_although_a_reader_is_in_the_file_when_it_starts(tmp_path: Path) -> None:
    path = tmp_path / "town.run"
    assert run_child("run_town", path, 20, 0.001, 20, 50)[-1]["error"] is None
    reading = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        reading.execute("BEGIN")
        assert reading.execute("SELECT count(*) FROM interviews").get == 50
        with Child("run_town", path, 20, 0.001, 20) as child:
            until(path.with_name(path.name + ".lock").exists, "the run to open its file")
            time.sleep(0.5)  # long enough for it to find us there
            reading.execute("COMMIT")
            assert child.ended()[-1] == {"error": None, "message": "", "kinds": []}
    finally:
        reading.close()
    with Results.open(path) as results:
        assert len(results) == 100


def test_a_slow_reader_does_not_make_the_write_ahead_log_grow_without_bound(tmp_path: Path) -> None:
    path, count, chars = tmp_path / "letters.run", 4_000, 10_000
    wal, largest = path.with_name(path.name + "-wal"), 0
    with Child("run_letters", path, count, chars, 0.001, 100) as child:
        child.wait_until_told()
        until(lambda: can_be_read(path) or not child.is_alive, "the file")
        with Results.open(path) as slow, Results.open(path) as quick:
            until(lambda: len(quick) > 500 or not child.is_alive, "some results")
            for place, result in enumerate(slow):
                assert result.answer["letter"] == letter(result.ordinal, chars)
                if place % 20 == 0:
                    # As slow as can be: it goes on only when the run has gone on, in the middle of its page.
                    seen = len(quick)
                    if seen == count:
                        break  # all is written, and nothing left to be slower than
                    until(lambda: len(quick) >= min(seen + 200, count) or not child.is_alive, "the run")  # noqa: B023
                largest = max(largest, wal.stat().st_size if wal.exists() else 0)
                if not child.is_alive:
                    break
            assert place < count // 2, "the reader was not slow"
        assert child.ended()[-1]["error"] is None
    assert path.stat().st_size > 50 * MB
    assert largest < 35 * MB, f"the log grew to {largest / MB:.0f} MB"


def test_a_slow_consumer_makes_the_run_wait_in_flat_memory(tmp_path: Path) -> None:
    count, window = 150, 16
    (told,) = run_child("slow_consumer", tmp_path / "letters.run", count, 200_000, window, 0.005)
    assert told["taken"] == count
    # Delivered in batches, which are no larger than the window themselves.
    assert told["furthest_ahead"] <= 2 * window
    assert told["peak_bytes"] - told["early_bytes"] < 15 * MB, told
    assert told["peak_bytes"] < 150 * MB, told
