import asyncio
import os

import apsw
import pytest

from headrace.errors import RunFileError, StorageFull
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.store.engine_file.engine_schema import MOST_EVENTS_KEPT, Effect, RunState
from headrace.store.writer_thread import WriterThread


@pytest.fixture
def file(tmp_path):
    opened = EngineFile.open(tmp_path / "a.run")
    yield opened
    opened.close()


def write(file, *groups):
    file.commit([each for group in groups for each in group])


def test_a_late_commit_of_an_attempt_that_was_replaced_is_refused(file):
    writes = Writes(0)
    write(file, writes.runs.submitted(1, None, "n", "k", b"[]", 2, 0.0), writes.runs.started(1, 2))
    write(
        file,
        writes.steps.starting(1, 1, "late start", Effect.OF_A_FUNCTION, 1.0),
        writes.steps.done(1, 1, "late", b'"old"', 1.0),
        writes.steps.checkpoint(1, 1, 1, b'"old"', 1.0),
        writes.steps.done(1, 2, "now", b'"new"', 1.0),
    )
    assert [step.name for step in file.steps.of_run(1, 100)] == ["now"]
    assert file.steps.checkpoint(1) == (0, None)


def test_a_steps_result_is_never_replaced(file):
    writes = Writes(0)
    write(file, writes.runs.submitted(1, None, "n", "k", b"[]", 2, 0.0), writes.runs.started(1, 1))
    write(file, writes.steps.done(1, 1, "s", b"1", 1.0), writes.steps.done(1, 1, "s", b"2", 2.0))
    write(file, writes.steps.starting(1, 1, "s", Effect.OF_A_FUNCTION, 3.0))
    assert file.steps.result(1, "s") == b"1"


def test_large_values_stand_beside_their_rows(file):
    writes, large = Writes(0), b'"' + b"x" * 300_000 + b'"'
    write(file, writes.runs.submitted(1, None, "n", "k", b"[]", 2, 0.0), writes.runs.started(1, 1))
    write(file, writes.steps.done(1, 1, "s", large, 1.0), writes.steps.checkpoint(1, 1, 1, large, 1.0))
    write(file, writes.steps.checkpoint(1, 1, 2, large, 2.0), writes.runs.ended(1, RunState.DONE, large, "", 3.0))
    (step,) = file.steps.of_run(1, 16_000)
    assert (step.result, step.is_finished) == (None, True)
    assert file.steps.result(1, "s") == file.runs.result(1) == large
    assert file.steps.checkpoint(1) == (2, large)
    assert file.connection.execute("SELECT count(*) FROM blobs").get == 3  # an old checkpoint's is gone


def test_a_late_commit_of_large_values_leaves_those_of_the_current_attempt_alone(file):
    writes, large = Writes(0), b'"' + b"x" * 300_000 + b'"'
    write(file, writes.runs.submitted(1, None, "n", "k", b"[]", 2, 0.0), writes.runs.started(1, 2))
    write(file, writes.steps.checkpoint(1, 2, 1, large, 1.0))
    write(file, writes.steps.checkpoint(1, 1, 1, large, 2.0), writes.steps.done(1, 1, "late", large, 2.0))
    assert file.steps.checkpoint(1) == (1, large)
    assert file.connection.execute("SELECT count(*) FROM blobs").get == 1


def test_a_batch_that_fails_leaves_nothing_behind(file):
    writes = Writes(0)
    write(file, writes.runs.submitted(1, b"key", "n", "k", b"[]", 2, 0.0))
    with pytest.raises(apsw.ConstraintError):
        write(
            file,
            writes.runs.submitted(2, None, "n", "k", b"[]", 2, 0.0),
            writes.runs.submitted(3, b"key", "n", "k", b"", 2, 0),
        )
    assert file.values.highest("runs") == 1


def test_the_events_kept_are_bounded(file):
    writes = Writes(0)
    write(file, *(writes.notes.event(0.0, None, "w", str(number), None) for number in range(MOST_EVENTS_KEPT + 3000)))
    kept = file.connection.execute("SELECT count(*), max(reason + 0) FROM events").fetchall()
    assert kept == [(MOST_EVENTS_KEPT, MOST_EVENTS_KEPT + 2999)]


def test_a_path_where_no_engine_file_can_be_is_refused_in_words(tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    for path, why in (
        (tmp_path / "file" / "deeper" / "e.run", "cannot be made: Not a directory"),
        (tmp_path / "pipe", "is not a regular file"),
        (tmp_path, "is a directory"),
    ):
        with pytest.raises(RunFileError, match=why):
            EngineFile.open(path)


async def test_a_writer_thread_makes_calls_in_order_and_says_errors_in_words(file):
    thread, made = WriterThread(file.live), []
    await asyncio.gather(*(thread.call(made.append, number) for number in range(20)))
    assert made == list(range(20))

    def fail():
        raise apsw.FullError("database or disk is full")

    with pytest.raises(StorageFull):
        await thread.call(fail)
    thread.close()
