"""Blocks of rows: what a long file says of its rows is true at every moment, and found out where it is not."""

import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from headrace import Agent, AgentList, Job, Model, QuestionFreeText
from headrace.errors import RunFileDamaged
from headrace.limits import RunOptions
from headrace.plan.bitmap import BLOCK_BITS
from headrace.store.run_file import row_blocks
from headrace.store.run_file.checksums import CHECK, counters_checksum
from headrace.store.run_file.row_blocks import RowBlocks
from headrace.store.run_file.rows import DetailPacker, Row, RowBatch, Status, row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.store.run_file.run_verification import verify_run_file
from headrace.survey.record import AnswerRecord, AnswerState, Detail, Usage, encode_detail

BLOCKS = 40
JOB = QuestionFreeText(question_name="q", question_text="Well?").by(
    AgentList(Agent({"i": at}) for at in range(1_000)), Model("test", canned_response="yes")
)


def opened(path: Path, job: Job = JOB) -> RunFile:
    return RunFile.open(path, job, RunOptions(n=BLOCKS * BLOCK_BITS // 1_000), lambda: None)


def batch(file: RunFile, ordinals: list[int]) -> RowBatch:
    record = AnswerRecord(0, AnswerState.ANSWERED, "yes")
    detail = DetailPacker(file.dictionary).compress(encode_detail(Detail("", 1.0, [record])))
    places = [(ordinal, *file.plan.coordinates(ordinal)) for ordinal in ordinals]
    return row_batch([Row(*place, Status.DONE, ["yes"], None, detail, [], Usage()) for place in places])


def commit(file: RunFile, *ordinals: int) -> set[int]:
    file.journal.commit([batch(file, list(ordinals))], ())
    return set(ordinals)


def some_of_each(file: RunFile) -> set[int]:
    done = set[int]()
    for number in range(BLOCKS - 1):
        first = number * BLOCK_BITS
        done |= commit(file, first, first + 5, first + BLOCK_BITS - 1)
    return done


def kept_blocks(path: Path) -> set[int]:
    with closing(apsw.Connection(str(path))) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'row_blocks'").get:
            return set()
        return {number for (number,) in connection.execute("SELECT block FROM row_blocks")}


def test_a_short_file_has_no_table_of_blocks(tmp_path):
    with closing(opened(tmp_path / "x.run")) as file:
        commit(file, 0, 1, 5, BLOCK_BITS)
    assert kept_blocks(tmp_path / "x.run") == set()
    with closing(opened(tmp_path / "x.run")) as file:
        assert set(file.stored) == {0, 1, 5, BLOCK_BITS}


def test_blocks_that_rest_are_found_without_their_rows(tmp_path, monkeypatch):
    path, looked_at = tmp_path / "x.run", list[int]()
    with closing(opened(path)) as file:
        done = some_of_each(file)
    assert len(kept_blocks(path)) >= BLOCKS - 10
    read = row_blocks._ordinals

    def counting(connection, first, behind):
        for ordinal in read(connection, first, behind):
            looked_at.append(ordinal)
            yield ordinal

    monkeypatch.setattr(row_blocks, "_ordinals", counting)
    with closing(opened(path)) as file:
        assert set(file.stored) == set(file.done) == done
    assert 0 < len(looked_at) <= 30  # of the 117


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_kill_at_any_moment_leaves_blocks_that_are_true(tmp_path, interrupted):
    path, twin = tmp_path / "x.run", tmp_path / "killed.run"
    with closing(opened(path)) as file:
        done = some_of_each(file)
        for at, number in enumerate((0, 3, 3, 17, 0, 38, 2, 1)):  # most of these rest, and wake
            if interrupted:
                rows = [batch(file, [number * BLOCK_BITS + 900 + at])]
                with pytest.raises(ZeroDivisionError):
                    file.journal.commit(rows, (), (), lambda: 1 / 0)  # pyright: ignore[reportArgumentType]
            done |= commit(file, number * BLOCK_BITS + 100 + at)
            for suffix in ("", "-wal"):
                shutil.copyfile(f"{path}{suffix}", f"{twin}{suffix}")
            with closing(opened(twin)) as killed:
                assert set(killed.stored) == done
                killed.journal.commit([batch(killed, [7 * BLOCK_BITS + 77])], ())
            with closing(opened(twin)) as again:
                assert set(again.stored) == done | {7 * BLOCK_BITS + 77}


def add_as_an_older_version(path: Path, ordinal: int) -> None:
    """A row, and its count; the table of blocks is not known there."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(
            "INSERT INTO interviews SELECT ?, iteration, agent, scenario, model, status, a0, more, NULL"
            " FROM interviews LIMIT 1",
            (ordinal,),
        )
        counters = dict(connection.execute("SELECT name, value FROM counters"))
        counters["done"] += 1
        counters[CHECK] = counters_checksum(counters)
        connection.executemany("UPDATE counters SET value = ? WHERE name = ?", [(v, k) for k, v in counters.items()])


def test_rows_that_an_older_version_added_are_found_and_the_table_is_written_anew(tmp_path):
    path = tmp_path / "x.run"
    with closing(opened(path)) as file:
        done = some_of_each(file)
    before = kept_blocks(path)
    add_as_an_older_version(path, 4 * BLOCK_BITS + 11)
    done.add(4 * BLOCK_BITS + 11)
    with closing(opened(path)) as file:
        assert set(file.stored) == done
    assert kept_blocks(path) >= before
    with closing(apsw.Connection(str(path))) as connection:
        assert set(RowBlocks.load(connection, path, BLOCKS * BLOCK_BITS).stored) == done
        assert not verify_run_file(connection, path).findings.get("row blocks")


@pytest.mark.parametrize("forged", ["bits = x'00'", "checksum = 5", "block = block + 1000"])
def test_a_table_that_cannot_be_read_is_not_used(tmp_path, forged):
    path = tmp_path / "x.run"
    with closing(opened(path)) as file:
        done = some_of_each(file)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(f"UPDATE row_blocks SET {forged} WHERE block = 3")
        assert verify_run_file(connection, path).findings.get("row blocks")
    with closing(opened(path)) as file:
        assert set(file.stored) == done


def test_a_row_that_is_missing_where_it_is_looked_for_is_refused(tmp_path):
    path = tmp_path / "x.run"
    with closing(opened(path)) as file:
        some_of_each(file)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("DELETE FROM interviews WHERE ordinal = 5")
        assert verify_run_file(connection, path).findings.get("row blocks")
    with pytest.raises(RunFileDamaged, match="1 are missing"):
        opened(path)
