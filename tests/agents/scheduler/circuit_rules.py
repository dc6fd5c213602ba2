"""What the circuits of kinds must never do, by books of their own: failures of runs, probes, and their successes."""

from dataclasses import dataclass, field

from headrace.agents.scheduler.events import (
    AttemptEnded,
    EndRun,
    Notice,
    ParkRun,
    RecordNotice,
    Refusal,
    RejectRun,
    SchedulerCommand,
    SchedulerEvent,
    StartRun,
    StopReason,
)
from headrace.exit_causes import ExitCause
from tests.agents.scheduler.broken import check
from tests.agents.scheduler.world import BREAKER, UNBROKEN, Run, World

_SUCCESSES = (ExitCause.DONE, ExitCause.PARKED)
_FINAL = (StopReason.CANCELLED, StopReason.TIMED_OUT, StopReason.PARENT_LOST)


@dataclass(slots=True)
class _Book:
    """Of one kind. `failed`: runs since the last success, and when; `probes`: started while the circuit was open."""

    failed: dict[int, float] = field(default_factory=dict)
    probes: set[int] = field(default_factory=set)
    successes: int = 0
    is_open: bool = False


class CircuitRules:
    def __init__(self, world: World) -> None:
        self._world = world
        self._books: dict[str, _Book] = {}

    def before(self, event: SchedulerEvent) -> None:
        """Note how an attempt ended, before the scheduler hears of it."""
        if not isinstance(event, AttemptEnded):
            return
        run = self._world.runs.get(event.id)
        if run is None or run.epoch != event.epoch:
            return  # news of an attempt that was replaced
        has_succeeded = _has_succeeded(run, event.cause)
        has_failed = _has_failed(run, event) and not event.is_endpoints
        book = self._book(run.kind)
        if not (has_succeeded or has_failed) or (book.is_open and run.id not in book.probes):
            return
        book.probes.discard(run.id)
        if has_failed:
            book.failed[run.topmost] = event.now_s
        elif book.is_open:
            book.successes += 1
        else:
            book.failed.clear()

    def check_command(self, command: SchedulerCommand, event: SchedulerEvent) -> None:
        match command:
            case StartRun():
                self._check_start(self._world.runs[command.id])
            case RejectRun(refusal=Refusal.CIRCUIT_OPEN):
                run = self._world.runs[command.id]
                check(not run.epoch, "what has started before is never held by a circuit")
                check(run.kind != UNBROKEN, "a kind without a breaker is never refused")
            case EndRun() | ParkRun():
                if run := self._world.runs.get(command.id):
                    self._book(run.kind).probes.discard(run.id)
            case RecordNotice(notice=Notice.CIRCUIT_OPENED):
                self._check_opened(self._book(command.subject), event)
            case RecordNotice(notice=Notice.CIRCUIT_CLOSED):
                book = self._book(command.subject)
                check(book.successes >= BREAKER.failures, "a circuit closes after enough successes of probes")
                self._books[command.subject] = _Book()
            case _:
                pass

    def after(self) -> None:
        is_enough = any(book.successes >= BREAKER.failures for book in self._books.values())
        check(not is_enough, "parking is a success, as an end is: enough of them close a circuit")

    def _check_start(self, run: Run) -> None:
        book = self._book(run.kind)
        if run.epoch or run.is_child or not book.is_open:
            return
        check(len(book.probes) <= book.successes, "a half-open circuit lets in one more than have succeeded")
        book.probes.add(run.id)

    def _check_opened(self, book: _Book, event: SchedulerEvent) -> None:
        is_end = isinstance(event, AttemptEnded)
        check(is_end and event.cause not in _SUCCESSES, "parking never opens a circuit")
        lately = [at_s for at_s in book.failed.values() if event.now_s - at_s <= BREAKER.within_s]
        needed = 1 if book.is_open else BREAKER.failures
        check(len(lately) >= needed, "a circuit opens after failures of different runs only")
        book.is_open, book.successes = True, 0
        book.failed.clear()
        book.probes.clear()

    def _book(self, kind: str) -> _Book:
        return self._books.setdefault(kind, _Book())


def _has_succeeded(run: Run, cause: ExitCause) -> bool:
    return cause is ExitCause.DONE or (cause is ExitCause.PARKED and run.pushed_out_by not in _FINAL)


def _has_failed(run: Run, ended: AttemptEnded) -> bool:
    if ended.cause is ExitCause.LOST:
        return run.pushed_out_by is None and (ended.is_own or run.ends_warden)
    return ended.cause is ExitCause.FAILED and run.pushed_out_by not in _FINAL
