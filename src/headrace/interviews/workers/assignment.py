"""Which worker gets which interviews, and when a chunk must wait.

Covers: parts that no worker has yet, in order; room in workers; interviews of a dead worker, given out again once its
spending is on disk, as far as the budget affords, those it may have died of one by one in the end. Does not cover: who
is suspected (interviews.workers.chunk_parts), one worker (interviews.workers.worker_slot), what comes back
(interviews.workers.interview_executor).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from headrace.errors import BudgetTooSmall, spelled
from headrace.interviews.workers.chunk_parts import (
    MOST_PART_BYTES,
    ChunkInFlight,
    ChunkPart,
    Reassignment,
    portions,
    reassign,
)
from headrace.interviews.workers.chunks_in_flight import ChunksInFlight
from headrace.interviews.workers.interview_deaths import death_in_words, failure_cause
from headrace.interviews.workers.worker_slot import WorkerSlot
from headrace.survey.record import Cause
from headrace.units import format_bytes
from headrace.workers.deaths import DeathCause, death_cause, may_need_more_memory
from headrace.workers.handle import TaskEnd
from headrace.workers.wire import Death, TaskOutOfMemory

_LEAST_WAITING = 10  # chunks that may be on their way to workers
_WAITING_FOR_EACH = 3
_ROWS_PART = 8  # of a worker's memory, the part that rows of agents and scenarios may take
_MOST_TOO_LARGE = 2  # interviews that did not fit into all the memory there is, once any did
_ROWS_FOR_ANOTHER = 10


class Assignment:
    """An interview that needs more than one worker's part of its host's memory has the first slot to itself, with all
    that the workers of that host may use together.
    """

    def __init__(self, slots: list[WorkerSlot], chunks: ChunksInFlight) -> None:
        self._slots = slots
        self._chunks = chunks
        self._waiting: deque[ChunkPart] = deque()
        self._trials: deque[ChunkPart] = deque()
        self._last: deque[ChunkPart] = deque()
        self._held: deque[tuple[int, ChunkPart]] = deque()  # with the event that must be on disk before
        self._room = asyncio.Event()
        self._is_over = False
        self._is_alone = self._helped_alone = False
        self._too_large = self._rows = 0
        self.affordable: int | None = None

    async def start(self, in_flight: ChunkInFlight) -> None:
        """Returns when its parts are with workers that keep up."""
        for group in portions(in_flight.chunk, min([MOST_PART_BYTES, *map(_most_row_bytes, self._slots)])):
            self._waiting.append(self._chunks.part(in_flight, group))
        self.assign()
        while not self._is_over and (self._waiting or self._not_taken() > self.most_waiting):
            self._room.clear()
            await self._room.wait()

    @property
    def most_waiting(self) -> int:
        """How many chunks may be on their way to workers."""
        return max(_LEAST_WAITING, _WAITING_FOR_EACH * len(self._slots))

    def joined(self, slot: WorkerSlot) -> None:
        """There is one more slot."""
        self._slots.append(slot)
        if self._is_alone:
            self._be_alone(True)

    def left(self, slot: WorkerSlot, ending: TaskEnd) -> None:
        """The slot's host is gone, and what its worker had is given out again."""
        self._slots.remove(slot)
        if self._is_alone and self._slots:
            self._be_alone(True)
        self.again(slot, ending)

    def assign(self) -> None:
        if self._last and not self._is_alone:
            if not self._slots or any(slot.parts for slot in self._slots):
                return  # they end first, and nothing else starts
            self._be_alone(True)
        self._have_one_on_trial()
        for slot in self._slots:
            if slot.is_on_trial and not slot.parts and not slot.is_asleep:
                self._give_trial(slot)
        while self._waiting and (slot := self._slot_for(self._waiting[0])) is not None:
            self._give(slot, self._waiting.popleft())
        self._room.set()

    def taken(self, part: ChunkPart) -> None:
        """A worker has accepted the part."""
        part.is_taken = True
        self._room.set()

    def sealed(self, rows: int) -> None:
        """Rows have come: interviews do fit."""
        self._rows += rows

    def over(self, slot: WorkerSlot, part: ChunkPart) -> None:
        """A worker has come to the end of a part."""
        self._chunks.spent(part.in_flight, slot.charges.take(part.left))
        if part.is_last and not part.left:
            self._helped_alone = True  # a worker's part is too small here: one goes on, with all of it
        self._chunks.part_over(part.in_flight)
        self.assign()

    def again(self, slot: WorkerSlot, ending: TaskEnd) -> None:
        """Give the interviews of a dead worker out again: those that may have killed it one by one in the end."""
        lost, slot.parts = slot.parts, {}
        cause = death_cause(ending) if slot.opened.is_set() else DeathCause.LOST
        may_need_more = may_need_more_memory(ending) and slot.limit_bytes < slot.place.all_bytes
        paid_at = self._tell_spent(slot, list(lost.values()))
        for part in lost.values():
            in_flight = part.in_flight
            if in_flight.signal is None:
                is_gone = slot not in self._slots
                after = reassign(part, slot.suspect, cause, may_need_more=may_need_more, is_host_gone=is_gone)
                self._set_aside(slot, in_flight, after, ending)
                for follower in self._followers(part, after):
                    self._queue(follower, paid_at)
            self._chunks.part_over(in_flight)
        slot.is_on_trial = True  # until no trial is left
        if self._is_alone and not self._last and not self._helped_alone:
            self._be_alone(False)
        self.assign()

    def acked(self, upto: int) -> None:
        """What dead workers had paid for is on disk up to here, and `affordable` counts it."""
        if not self._held or self._held[0][0] > upto:
            return
        while self._held and self._held[0][0] <= upto:
            part = self._held.popleft()[1]
            excess = 0 if self.affordable is None else self._interviews_in_flight() + len(part.left) - self.affordable
            for ordinal in list(part.left)[: max(0, excess)]:
                del part.left[ordinal]  # left undone: the budget has no room to conduct it again
            if part.left:
                self._queue(part)
            else:
                self._chunks.part_over(part.in_flight)
        self.assign()

    def drop(self, in_flight: ChunkInFlight) -> None:
        """What no worker has yet."""
        for line in (self._waiting, self._trials, self._last):
            for part in [part for part in line if part.in_flight is in_flight]:
                line.remove(part)
                self._chunks.part_over(in_flight)
        for held in [held for held in self._held if held[1].in_flight is in_flight]:
            self._held.remove(held)
            self._chunks.part_over(in_flight)
        self._room.set()

    def stop(self) -> None:
        """Release those who wait in `start`: there are no workers any more."""
        self._is_over = True
        self._room.set()

    # After a death.

    def _tell_spent(self, slot: WorkerSlot, lost: list[ChunkPart]) -> int:
        """What the dead worker has paid for; calls that had no reply yet are requests all the same."""
        if not lost:
            return 0
        usage = slot.charges.take([ordinal for part in lost for ordinal in part.left])
        return self._chunks.spent(lost[0].in_flight, usage, slot.unanswered)

    def _set_aside(self, slot: WorkerSlot, in_flight: ChunkInFlight, after: Reassignment, ending: TaskEnd) -> None:
        if after.undone is not None:
            in_flight.undone = f"{death_in_words(ending)}, from outside, again and again"
        if after.failed is not None:
            if may_need_more_memory(ending):
                self._check_budget(slot.place.all_bytes, ending)
            self._chunks.fail(in_flight, after.failed, failure_cause(ending), death_in_words(ending))

    def _check_budget(self, all_bytes: int, ending: TaskEnd) -> None:
        """A few interviews may need too much. Where the first does, or many do, the budget is too small."""
        self._too_large += 1
        if self._too_large > (_MOST_TOO_LARGE + self._rows // _ROWS_FOR_ANOTHER if self._rows else 0):
            raise BudgetTooSmall(
                f"Interviews end their workers, each alone with all the {format_bytes(all_bytes)} that workers"
                f" may use: {death_in_words(ending)}.",
                budget_bytes=all_bytes,
                used_bytes=_peak_bytes(ending),
                fix=spelled(
                    "Give a larger {memory}, or run without {workers}. Everything journaled is safe.",
                    memory=None,
                    workers=None,
                ),
            )

    def _followers(self, lost: ChunkPart, after: Reassignment) -> Iterator[ChunkPart]:
        """The parts in which a lost part's interviews are given out again: in the next epoch, the first with its id."""
        kept_id: int | None = lost.id
        for interviews, is_trial, is_last in after.groups():
            yield self._chunks.part(
                lost.in_flight,
                interviews,
                id=kept_id,
                epoch=lost.epoch + 1,
                is_trial=is_trial,
                is_last=is_last,
                kills=after.kills,
            )
            kept_id = None

    def _queue(self, part: ChunkPart, after_seq: int = 0) -> None:
        if after_seq:
            self._held.append((after_seq, part))
        else:
            (self._last if part.is_last else self._trials if part.is_trial else self._waiting).append(part)

    def _be_alone(self, is_alone: bool) -> None:
        """One worker with all the memory of its host, or each slot's with its part."""
        self._is_alone = is_alone
        if not self._slots:
            return  # their hosts are gone; the next that joins is the first
        first, *others = self._slots
        for slot in others:
            if slot.is_asleep is not is_alone:
                slot.sleep(is_alone)
        first.is_on_trial = True
        limit_bytes = first.place.all_bytes if is_alone else first.place.limit_bytes
        if first.limit_bytes != limit_bytes:
            first.restart(limit_bytes)
        if first.is_asleep:
            first.sleep(False)

    # Giving.

    def _have_one_on_trial(self) -> None:
        """Those that were are gone with their hosts: the least busy takes over what is to be tried alone."""
        is_wanted = self._trials and self._slots and not self._is_alone
        if is_wanted and not any(slot.is_on_trial for slot in self._slots):
            min(self._slots, key=_load).is_on_trial = True

    def _give_trial(self, slot: WorkerSlot) -> None:
        line = self._last or self._trials
        if line:
            slot.renew()
            self._give(slot, line.popleft())
        elif not any(part.is_trial for _, part in self._held):
            slot.is_on_trial = False

    def _slot_for(self, part: ChunkPart) -> WorkerSlot | None:
        """The least busy that has room: what waits in a worker takes of the memory that its interviews need."""
        slots = [slot for slot in self._slots if not (slot.is_on_trial or slot.is_asleep or slot.is_resting)]
        return min(
            (slot for slot in slots if not slot.parts or slot.row_bytes + part.row_bytes <= _most_row_bytes(slot)),
            key=_load,
            default=None,
        )

    def _give(self, slot: WorkerSlot, part: ChunkPart) -> None:
        if part.row_bytes <= MOST_PART_BYTES:
            slot.give(part)
            return
        for interview in part.left.values():  # one: nothing was put beside it
            size = format_bytes(part.row_bytes)
            message = f"its agent and scenario take {size}, more than a worker can be sent"
            self._chunks.fail(part.in_flight, interview, Cause.DATA, message)
        self._chunks.part_over(part.in_flight)

    def _not_taken(self) -> int:
        return sum(slot.untaken for slot in self._slots)

    def _interviews_in_flight(self) -> int:
        """Interviews that are paid for, or will be; not those that are held back."""
        queued = (len(part.left) for line in (self._waiting, self._trials, self._last) for part in line)
        return sum(slot.load for slot in self._slots) + sum(queued)


def _load(slot: WorkerSlot) -> int:
    return slot.load


def _most_row_bytes(slot: WorkerSlot) -> int:
    return slot.place.limit_bytes // _ROWS_PART


def _peak_bytes(ending: TaskEnd) -> int:
    match ending:
        case Death():
            return ending.peak_bytes
        case TaskOutOfMemory():
            return ending.used_bytes
        case _:
            return 0
