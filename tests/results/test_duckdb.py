"""DuckDB over Parquet parts of a run file: the same rows, whatever happens to the file; only what is new is written."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import InvalidInput, MissingExtra, OptionError, RunFileDamaged
from headrace.plan.job import Job
from headrace.results.export import parquet_parts, part_manifest
from headrace.results.export.column_shapes import Leaf, Shape
from headrace.results.results import Results
from headrace.store.run_file import range_digests
from headrace.store.run_file.removal import disk_bytes, remove_run
from headrace.store.run_file.rows import row_batch
from headrace.survey.agent import Agent
from headrace.survey.model import Model
from tests.results import files


@pytest.fixture(autouse=True)
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges of 8 interviews, so that a few have several parts."""
    monkeypatch.setattr(range_digests, "RANGE_BITS", 3)
    monkeypatch.setattr(parquet_parts, "RANGE_BITS", 3)


def job(people: int = 40) -> Job:
    return files.job(files.survey("mood", "rating"), [Agent({"age": 20 + n, "Mood": "x"}) for n in range(people)])


def add(path: Path, of: Job, answers: Callable[[int], list[Any]], ordinals: range | list[int]) -> None:
    """Add interviews to a file, or replace those that it has."""
    with files.opened(path, of) as file:
        file.journal.commit([row_batch([files.row(file, of, n, answers(n)) for n in ordinals])], [])


def asked(n: int) -> list[Any]:
    return [f"mood {n % 3}", n]


def part_names(path: Path) -> set[str]:
    return {each.name for each in path.with_name(path.name + ".parts").glob("part-*.parquet")}


def rows_of(results: Results, view: str = "results") -> list[tuple[Any, ...]]:
    return results.duckdb().execute(f'select * from {view} order by "ordinal"').fetchall()


def test_the_views_have_answers_and_fields_by_their_names(tmp_path: Path) -> None:
    of = job(20)
    with Results.open(files.write(tmp_path / "x.run", of, asked)) as results:
        connection = results.duckdb()
        described = {name: kind for name, kind, *_ in connection.execute("describe results").fetchall()}
        assert described == {
            "answer.mood": "VARCHAR",  # which DuckDB would take for the trait Mood
            "rating": "BIGINT",
            "age": "BIGINT",
            "agent.Mood": "VARCHAR",
            "model": "VARCHAR",
            "iteration": "BIGINT",
            "ordinal": "BIGINT",
            "status": "VARCHAR",
        }
        assert rows_of(results) == list(results.to_list())
        query = "select avg(rating), count(*) from self where age < 25"
        assert connection.execute(query).fetchall() == [(2.0, 5)]


def test_self_has_the_interviews_of_the_view_and_results_all(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(20), asked)) as results:
        chosen = results.filter("rating > 12").sort_by("rating", reverse=True).head(3)
        connection = chosen.duckdb()
        assert connection.execute("select rating from self order by 1").fetchall() == [(17,), (18,), (19,)]
        assert connection.execute("select count(*) from results").fetchall() == [(20,)]


def test_what_a_run_returns_is_self(tmp_path: Path) -> None:
    of = job(20).by(Model("test", canned_response="x"))
    first = of.run(tmp_path / "x.run", limit=5, progress_bar=False)
    of.run(tmp_path / "x.run", progress_bar=False)
    connection = first.duckdb()
    assert connection.execute("select count(*), max(ordinal) from self").fetchall() == [(5, 4)]
    assert connection.execute("select count(*) from results").fetchall() == [(20,)]
    first.close()


def test_only_ranges_with_new_interviews_are_written(tmp_path: Path) -> None:
    of, path = job(), tmp_path / "x.run"
    files.write(path, of, asked, range(20))
    with Results.open(path) as results:
        assert len(rows_of(results)) == 20
        before = part_names(path)
        assert len(rows_of(results)) == 20
        assert part_names(path) == before
        add(path, of, asked, range(20, 30))
        assert rows_of(results) == list(results.to_list())
        assert len(part_names(path) & before) == 2  # ordinals 0 to 7 and 8 to 15
        assert len(part_names(path)) == 4


def test_an_interview_that_is_asked_again_is_replaced_in_its_part(tmp_path: Path) -> None:
    of, path = job(), tmp_path / "x.run"
    files.write(path, of, lambda n: [files.MISSING, None] if n == 9 else asked(n), range(24))
    with Results.open(path) as results:
        assert rows_of(results)[9][0] is None
        before = part_names(path)
        add(path, of, lambda _: [files.MISSING, "half"], [9])  # failed again, with another answer
        assert rows_of(results)[9][1] == '"half"'
        add(path, of, asked, [9])
        assert rows_of(results)[9][:2] == ("mood 0", "9")  # the file says that the column has held a text
        assert len(part_names(path) & before) == 0  # since the column of numbers was widened
        kept = part_names(path)
        add(path, of, lambda _: ["again", 9], [9])
        assert rows_of(results)[9][0] == "again"
        assert len(part_names(path) & kept) == 2


def test_a_new_file_at_the_same_path_gets_new_parts(tmp_path: Path) -> None:
    path = tmp_path / "x.run"
    with Results.open(files.write(path, job(), asked, range(10))) as results:
        rows_of(results)
    path.unlink()
    files.write(path, files.job(files.survey("other"), [Agent({"n": n}) for n in range(3)]), lambda n: [n])
    with Results.open(path) as results:
        assert [row[0] for row in rows_of(results)] == [0, 1, 2]
        assert len(part_names(path)) == 1


def test_a_connection_goes_on_reading_parts_that_were_replaced(tmp_path: Path) -> None:
    of, path = job(), tmp_path / "x.run"
    files.write(path, of, asked, range(4))
    with Results.open(path) as results:
        earlier = results.duckdb()
        add(path, of, asked, range(4, 6))
        assert len(rows_of(results)) == 6
        assert earlier.execute("select count(*) from results").fetchall() == [(4,)]
        assert len(part_names(path)) == 2
        earlier.close()
        del earlier
        assert len(rows_of(results)) == 6
        assert len(part_names(path)) == 1


def test_parts_are_for_their_owner_alone_and_go_with_the_run_file(tmp_path: Path) -> None:
    path = files.write(tmp_path / "x.run", job(10), asked)
    with Results.open(path) as results:
        rows_of(results)
    directory = tmp_path / "x.run.parts"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(each.stat().st_mode) for each in directory.iterdir()} == {0o600}
    assert disk_bytes(path) > path.stat().st_size
    remove_run(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["it's [1] of 2*.run", "what? 😀.run"])
def test_any_path_and_any_names_of_fields_will_do(tmp_path: Path, name: str) -> None:
    fields = ['say "hi"', "a.b", "select", "é ü", "x'; drop view results; --", "AGE", "age", "{{ n }}"]
    agents = [Agent(dict.fromkeys(fields, n)) for n in range(3)]
    with Results.open(files.write(tmp_path / name, files.job(files.survey("q"), agents), lambda n: [n])) as results:
        assert rows_of(results)[2][: 1 + len(fields)] == (2,) * (1 + len(fields))
        assert results.duckdb().execute('select "say ""hi""", "age_2" from self').fetchall()[1] == (1, 1)


def test_what_queries_leave_on_disk_goes(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results:
        (tmp_path / "x.run.parts" / "spill-0123").mkdir(parents=True)  # of a process that was killed
        connection = results.duckdb()
        connection.execute("set memory_limit = '60MB'; set threads = 1")
        query = (
            "select count(*) from (select range as n, repeat('x', 50) as t from range(2_000_000) order by t, n desc)"
        )
        assert connection.execute(query).fetchall() == [(2_000_000,)]
        connection.close()
        assert list((tmp_path / "x.run.parts").glob("spill-*/*")) == []


def test_an_empty_file_has_its_columns(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(), asked, [])) as results:
        connection = results.duckdb(tmp_path / "elsewhere")
        assert connection.execute("select count(rating) from self").fetchall() == [(0,)]
    assert (tmp_path / "elsewhere" / "manifest.json").exists()


_DIES = """
import os, signal, sys
from pathlib import Path
from headrace.results.export import parquet_parts
from headrace.results.results import Results
from headrace.store.run_file import range_digests
range_digests.RANGE_BITS = parquet_parts.RANGE_BITS = 3
def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before":
    parquet_parts.save_manifest = killed
elif sys.argv[2] == "within":
    parquet_parts.sync = killed
elif sys.argv[2] == "after":
    parquet_parts._remove_unlisted = killed
print(Results.open(sys.argv[1]).duckdb().execute("select count(*), sum(rating) from results").fetchall())
"""


@pytest.mark.parametrize("moment", ["within", "before", "after"])
def test_a_kill_leaves_the_parts_right(tmp_path: Path, moment: str) -> None:
    of, path = job(), tmp_path / "x.run"
    files.write(path, of, asked, range(12))
    with Results.open(path) as results:
        rows_of(results)
        add(path, of, asked, range(12, 30))
        ran = subprocess.run([sys.executable, "-c", _DIES, str(path), moment], capture_output=True, check=False)
        assert ran.returncode == -signal.SIGKILL, ran.stderr
        assert rows_of(results) == list(results.to_list())
        assert len(part_names(path)) == 4


def test_two_processes_at_once_read_the_same(tmp_path: Path) -> None:
    path = files.write(tmp_path / "x.run", job(), asked)
    command = [sys.executable, "-c", _DIES, str(path), "never"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        printed, errors = process.communicate(timeout=120)
        assert printed.strip() == f"[(40, {sum(range(40))})]", errors


def test_threads_of_one_process_read_the_same(tmp_path: Path) -> None:
    path = files.write(tmp_path / "x.run", job(), asked)
    found: list[int] = []
    with Results.open(path) as results:
        threads = [threading.Thread(target=lambda: found.append(len(rows_of(results)))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [40] * 4


@pytest.mark.parametrize(
    "written",
    ["", "[]", '{"version": 1}', '{"made_at": 1, "columns": [["x", "nonsense"]], "parts": {}}', "\x00" * 100],
)
def test_a_manifest_that_cannot_be_used_is_made_again(tmp_path: Path, written: str) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results:
        rows_of(results)
        (tmp_path / "x.run.parts" / part_manifest.MANIFEST).write_text(written)
        assert rows_of(results) == list(results.to_list())


def test_a_manifest_names_no_file_elsewhere(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results:
        rows_of(results)
        manifest = tmp_path / "x.run.parts" / part_manifest.MANIFEST
        listed = min(part_names(results.path))
        (tmp_path / "y.parquet").write_bytes((tmp_path / "x.run.parts" / listed).read_bytes())
        manifest.write_text(manifest.read_text().replace(listed, "../y.parquet"))
        assert part_manifest.load_manifest(tmp_path / "x.run.parts") is None
        assert rows_of(results) == list(results.to_list())


def test_a_part_that_was_cut_or_deleted_is_written_again(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(), asked)) as results:
        rows_of(results)
        one, two, *_ = sorted(part_names(results.path))
        (tmp_path / "x.run.parts" / one).unlink()
        (tmp_path / "x.run.parts" / two).write_bytes(b"PAR1")
        assert rows_of(results) == list(results.to_list())


def test_a_damaged_row_stops_it_and_the_parts_stay_as_they_were(tmp_path: Path) -> None:
    of, path = job(), tmp_path / "x.run"
    files.write(path, of, asked, range(20))
    with Results.open(path) as results:
        rows_of(results)
        before = part_names(path)
    _in_another_process(path, "update interviews set a0 = 'changed', checksum = checksum + (1 << 33) where ordinal = 9")
    with Results.open(path) as results, pytest.raises(RunFileDamaged, match="Interview 9"):
        results.duckdb()
    assert {entry.name for entry in manifest_of(path).parts.values()} == before


def _in_another_process(path: Path, sql: str) -> None:
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit(); c.close()"
    subprocess.run([sys.executable, "-c", program, str(path), sql], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(0o500)
    with (
        Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results,
        pytest.raises(OptionError, match="directory="),
    ):
        results.duckdb(tmp_path / "closed" / "parts")


def test_a_link_in_place_of_the_directory_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "x.run.parts").symlink_to(tmp_path / "elsewhere")
    with (
        Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results,
        pytest.raises(OptionError, match="is a link"),
    ):
        results.duckdb()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("module", ["duckdb", "pyarrow"])
def test_a_missing_library_is_named_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(MissingExtra, match=module):
            results.duckdb()
    assert not (tmp_path / "x.run.parts").exists()


def test_a_sum_of_files_is_refused(tmp_path: Path) -> None:
    with (
        Results.open(files.write(tmp_path / "x.run", job(10), asked)) as results,
        Results.open(files.write(tmp_path / "y.run", job(10), asked)) as other,
    ):
        with pytest.raises(InvalidInput, match=r"and these are several\."):
            (results + other).duckdb()
        with pytest.raises(InvalidInput, match="several parts of one, put together"):
            (results.head(3) + results.tail(3)).duckdb()


def test_the_parts_are_plain_parquet_in_plan_order(tmp_path: Path) -> None:
    with Results.open(files.write(tmp_path / "x.run", job(20), asked)) as results:
        rows_of(results)
    for each in (tmp_path / "x.run.parts").glob("part-*.parquet"):
        ordinals = pq.ParquetFile(each).read().column("interview.ordinal").to_pylist()
        assert ordinals == sorted(ordinals)
        assert len({ordinal >> 3 for ordinal in ordinals}) == 1


ANSWERS = (
    st.none() | st.integers(-5, 5) | st.floats(-1, 1) | st.sampled_from(["a", "", "7"]) | st.lists(st.integers(0, 3))
)
# What a run writes: new interviews, and failed ones again.
HISTORIES = st.lists(st.lists(st.tuples(st.integers(0, 30), ANSWERS, st.booleans()), max_size=6), max_size=5)


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(HISTORIES)
def test_the_parts_follow_any_history_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, history: list[list[tuple[int, Any, bool]]]
) -> None:
    path, of = tmp_path_factory.mktemp("h") / "x.run", job(31)
    files.write(path, of, asked, [])
    done: set[int] = set()
    with Results.open(path) as results:
        for step in history:
            new = {n: (answer, failed) for n, answer, failed in step if n not in done}
            done |= {n for n, (_, failed) in new.items() if not failed}
            if new:
                answers = {n: [files.MISSING if failed else "fine", answer] for n, (answer, failed) in new.items()}
                add(path, of, answers.__getitem__, sorted(new))
            found = results.duckdb().execute('select ordinal, "answer.mood", rating from results order by 1').fetchall()
            rating = manifest_of(path).shapes["answer.rating"]
            read = [(n, mood, as_written(value, rating)) for n, mood, value in found]
            assert read == results.select("ordinal", "answer.mood", "answer.rating").to_list()


def manifest_of(path: Path) -> part_manifest.PartManifest:
    found = part_manifest.load_manifest(path.with_name(path.name + ".parts"))
    assert found is not None
    return found


def as_written(value: Any, shape: Shape) -> Any:
    return json.loads(value) if shape is Leaf.MIXED and value is not None else value
