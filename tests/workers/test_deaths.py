"""The table of deaths, row by row, and that interviews and agent runs read each row alike."""

import signal
import sys

import pytest

from headrace.agents.workers.agent_deaths import exit_after_death, in_step, set_aside_in_words
from headrace.exit_causes import ExitCause
from headrace.interviews.workers.interview_deaths import death_in_words, failure_cause
from headrace.survey.record import Cause
from headrace.workers.deaths import DeathCause, death_cause, may_need_more_memory, signal_name
from headrace.workers.functions import refer_to
from headrace.workers.handle import TaskEnd
from headrace.workers.pool import WorkerPool
from headrace.workers.wire import MEMORY_EXIT_CODE, Death, DeathKind, TaskDone, TaskFailed, TaskOutOfMemory
from tests.workers import entries
from tests.workers.trees import soon

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="isolated workers are not on Windows")
OUT_OF_MEMORY, CRASHED, HUNG, LOST = DeathCause
LIMIT = 100 << 20
SHARES = (0.0, 0.5, 0.89, 0.9, 0.95, 1.0, 1.2)


def at_limit_or(below: DeathCause) -> dict[float, DeathCause]:
    return {share: OUT_OF_MEMORY if share >= 0.9 else below for share in SHARES}


def always(cause: DeathCause) -> dict[float, DeathCause]:
    return dict.fromkeys(SHARES, cause)


def by_signal(number: int) -> dict[str, object]:
    return {"kind": DeathKind.SIGNALLED, "signal": number}


def killed(kind: DeathKind) -> dict[str, object]:
    return {"kind": kind, "signal": signal.SIGKILL, "reason": "a reason"}


def exited(code: int) -> dict[str, object]:
    return {"kind": DeathKind.EXITED, "code": code}


TABLE = [
    (killed(DeathKind.OUT_OF_MEMORY), always(OUT_OF_MEMORY)),
    (killed(DeathKind.HUNG), at_limit_or(HUNG)),
    (killed(DeathKind.STOPPED), always(LOST)),
    (killed(DeathKind.LOST), always(LOST)),
    (killed(DeathKind.WARDEN_ENDED), always(LOST)),
    (killed(DeathKind.TOO_MUCH_OUTPUT), always(CRASHED)),
    (exited(MEMORY_EXIT_CODE), always(OUT_OF_MEMORY)),
    (exited(1), at_limit_or(CRASHED)),
    (exited(0), always(CRASHED)),
    *((by_signal(getattr(signal, name)), at_limit_or(CRASHED)) for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL")),
    (by_signal(signal.SIGTRAP), at_limit_or(CRASHED)),
    (by_signal(signal.SIGFPE), always(CRASHED)),
    (by_signal(signal.SIGSYS), always(CRASHED)),
    (by_signal(signal.SIGXCPU), always(CRASHED)),
    (by_signal(signal.SIGXFSZ), always(CRASHED)),
    (by_signal(signal.SIGKILL), always(LOST)),
    (by_signal(signal.SIGTERM), always(LOST)),
    (by_signal(signal.SIGHUP), always(LOST)),
    (by_signal(40), always(LOST)),
]
ROWS = [
    pytest.param(row, share, cause, id=f"{row['kind'].value} {row.get('code', row.get('signal'))} {share}")
    for row, causes in TABLE
    for share, cause in causes.items()
]


@pytest.mark.parametrize("held", ["used_bytes", "reserved_bytes"])
@pytest.mark.parametrize(("row", "share", "cause"), ROWS)
def test_a_death_is_read_by_the_table(row: dict, share: float, cause: DeathCause, held: str):
    death = Death(worker=1, limit_bytes=LIMIT, **{held: int(share * LIMIT)}, **row)
    assert death_cause(death) is cause
    assert_both_agree(death, cause)


@pytest.mark.parametrize(
    ("ending", "cause"),
    [
        (TaskOutOfMemory(1, 5, 5, "MemoryError"), OUT_OF_MEMORY),
        (TaskFailed(1, "ValueError: x"), CRASHED),
        (TaskDone(1), CRASHED),
        (Death(1, DeathKind.LOST, reason="no process could be made"), LOST),
    ],
    ids=str,
)
def test_what_a_worker_says_of_itself_is_read_by_the_table_too(ending: TaskEnd, cause: DeathCause):
    assert death_cause(ending) is cause
    assert_both_agree(ending, cause)


def assert_both_agree(ending: TaskEnd, cause: DeathCause) -> None:
    is_memory = cause is OUT_OF_MEMORY
    exit_cause, words = exit_after_death(ending, in_step("a step"))
    assert exit_cause is (ExitCause.OUT_OF_MEMORY if is_memory else ExitCause.LOST)
    if is_memory:
        assert "'a step'" in words
        assert "slot_memory=" in set_aside_in_words("", words, is_tried_again=True)
    assert failure_cause(ending) is (Cause.OUT_OF_MEMORY if is_memory else Cause.CRASHED)
    assert ("also alone" in death_in_words(ending)) is is_memory
    assert may_need_more_memory(ending) or not is_memory


def test_an_earlier_peak_is_not_the_reason_of_a_later_crash():
    """Of another task of the same worker, or under a limit that was higher then."""
    death = Death(
        1, DeathKind.SIGNALLED, signal=signal.SIGSEGV, used_bytes=LIMIT // 3, peak_bytes=LIMIT, limit_bytes=LIMIT
    )
    assert death_cause(death) is CRASHED


def test_native_code_that_crashes_below_its_limit_may_still_need_more():
    """One large allocation that is refused leaves no reading."""
    for name, may in {"SIGSEGV": True, "SIGABRT": True, "SIGFPE": False, "SIGKILL": False}.items():
        death = Death(1, DeathKind.SIGNALLED, signal=getattr(signal, name), used_bytes=1, limit_bytes=LIMIT)
        assert may_need_more_memory(death) is may


def test_signals_are_named():
    assert [signal_name(number) for number in (9, 11, 40, None)] == ["SIGKILL", "SIGSEGV", "signal 40", "signal None"]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere readings are rarer")
@pytest.mark.parametrize(
    ("how", "below", "at_limit"),
    [
        ("3", CRASHED, OUT_OF_MEMORY),
        ("SIGABRT", CRASHED, OUT_OF_MEMORY),
        ("SIGFPE", CRASHED, CRASHED),
        ("SIGKILL", LOST, LOST),
    ],
)
async def test_a_real_death_is_read_by_the_table(pool: WorkerPool, how: str, below: DeathCause, at_limit: DeathCause):
    for megabytes, cause in ((30, below), (94, at_limit)):
        worker = await pool.worker(LIMIT)
        worker.start(refer_to(entries.hold_and_end), f"{megabytes} {how}".encode())
        assert await soon(lambda worker=worker, held=megabytes - 2: worker.used_bytes >= held << 20)
        worker.send(b"now")
        ending = await worker.receive()
        assert death_cause(ending) is cause, ending
