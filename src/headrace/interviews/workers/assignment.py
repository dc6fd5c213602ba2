"""Which worker gets which interviews, and when a chunk must wait.

Covers: what no worker has yet, in order; room in workers; interviews of a dead worker, handed out again once its
spending is on disk, as far as the budget affords, those it may have died of one by one in the end. Does not cover: who
is suspected (interviews.workers.chunk_parts), one worker (interviews.workers.worker_slot), what comes back
(interviews.workers.interview_executor).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator

from headrace.errors import BudgetTooSmall, spelled
from headrace.interviews.workers.chunk_parts import MOST_PIECE_BYTES, Aftermath, Flight, Piece, aftermath, portions
from headrace.interviews.workers.chunks_in_flight import Flights
from headrace.interviews.workers.interview_deaths import Blame, blame_of, cause_of, may_need_more_memory, told_of
from headrace.interviews.workers.worker_slot import Lane
from headrace.survey.record import Cause
from headrace.units import format_bytes
from headrace.workers.handle import Ending
from headrace.workers.wire import Death, OutOfMemory

MOST_WAITING = 10  # chunks that no worker has taken yet
_MOST_TOO_LARGE = 2  # interviews that did not fit into all the memory there is, once any did
_ROWS_FOR_ANOTHER = 10


class Handout:
    """Rows of agents and scenarios may take `most_lane_bytes` in a worker. `all_bytes` is what all workers may use
    together: an interview that needs more than one worker's part has the first lane to itself, with all of it.
    """

    def __init__(self, lanes: list[Lane], flights: Flights, most_lane_bytes: int, all_bytes: int) -> None:
        self._lanes = lanes
        self._flights = flights
        self._most_lane_bytes = most_lane_bytes
        self._all_bytes = all_bytes
        self._waiting: deque[Piece] = deque()
        self._trials: deque[Piece] = deque()
        self._last: deque[Piece] = deque()
        self._held: deque[tuple[int, Piece]] = deque()  # with the event that must be on disk before
        self._room = asyncio.Event()
        self._is_over = False
        self._is_alone = self._helped_alone = False
        self._too_large = self._rows = 0
        self.affordable: int | None = None

    async def start(self, flight: Flight) -> None:
        """Returns when its pieces are with workers that keep up."""
        for group in portions(flight.chunk, min(MOST_PIECE_BYTES, self._most_lane_bytes)):
            self._waiting.append(self._flights.piece(flight, group))
        self.assign()
        while not self._is_over and (self._waiting or self._not_taken() > MOST_WAITING):
            self._room.clear()
            await self._room.wait()

    def assign(self) -> None:
        if self._last and not self._is_alone:
            if any(lane.pieces for lane in self._lanes):
                return  # they end first, and nothing else starts
            self._be_alone(True)
        for lane in self._lanes:
            if lane.is_on_trial and not lane.pieces and not lane.is_asleep:
                self._give_trial(lane)
        while self._waiting and (lane := self._lane_for(self._waiting[0])) is not None:
            self._give(lane, self._waiting.popleft())
        self._room.set()

    def taken(self, lane: Lane, piece: int) -> None:
        if piece in lane.pieces:
            lane.pieces[piece].is_taken = True
        self._room.set()

    def sealed(self, rows: int) -> None:
        """Rows have come: interviews do fit."""
        self._rows += rows

    def over(self, lane: Lane, piece: Piece) -> None:
        """A worker has come to the end of a piece."""
        self._flights.spent(piece.flight, lane.charges.take(piece.left))
        if piece.is_last and not piece.left:
            self._helped_alone = True  # a worker's part is too small here: one goes on, with all of it
        self._flights.piece_over(piece.flight)
        self.assign()

    def again(self, lane: Lane, ending: Ending) -> None:
        """Hand the interviews of a dead worker out again: those it may have died of one by one in the end."""
        lost, lane.pieces = lane.pieces, {}
        blame = blame_of(ending) if lane.opened.is_set() else Blame.NOTHING
        may_need_more = may_need_more_memory(ending) and lane.limit_bytes < self._all_bytes
        paid_at = self._tell_spent(lane, list(lost.values()))
        for piece in lost.values():
            flight = piece.flight
            if flight.signal is None:
                after = aftermath(piece, lane.suspect, blame, may_need_more=may_need_more)
                self._set_aside(flight, after, ending)
                for follower in self._followers(flight, after):
                    self._queue(follower, paid_at)
            self._flights.piece_over(flight)
        lane.is_on_trial = True  # until no trial is left
        if self._is_alone and not self._last and not self._helped_alone:
            self._be_alone(False)
        self.assign()

    def acked(self, upto: int) -> None:
        """What dead workers had paid for is on disk up to here, and `affordable` counts it."""
        if not self._held or self._held[0][0] > upto:
            return
        while self._held and self._held[0][0] <= upto:
            piece = self._held.popleft()[1]
            excess = 0 if self.affordable is None else self._in_flight() + len(piece.left) - self.affordable
            for ordinal in list(piece.left)[: max(0, excess)]:
                del piece.left[ordinal]  # left undone: the budget has no room to conduct it again
            if piece.left:
                self._queue(piece)
            else:
                self._flights.piece_over(piece.flight)
        self.assign()

    def drop(self, flight: Flight) -> None:
        """What no worker has yet."""
        for line in (self._waiting, self._trials, self._last):
            for piece in [piece for piece in line if piece.flight is flight]:
                line.remove(piece)
                self._flights.piece_over(flight)
        for held in [held for held in self._held if held[1].flight is flight]:
            self._held.remove(held)
            self._flights.piece_over(flight)
        self._room.set()

    def stop(self) -> None:
        """Nobody need wait any more: there are no workers to wait for."""
        self._is_over = True
        self._room.set()

    # After a death.

    def _tell_spent(self, lane: Lane, lost: list[Piece]) -> int:
        """What the dead worker has paid for; calls that had no reply yet are requests all the same."""
        if not lost:
            return 0
        usage = lane.charges.take([ordinal for piece in lost for ordinal in piece.left])
        return self._flights.spent(lost[0].flight, usage, lane.unanswered)

    def _set_aside(self, flight: Flight, after: Aftermath, ending: Ending) -> None:
        if after.undone is not None:
            flight.undone = f"{told_of(ending)}, from outside, again and again"
        if after.failed is not None:
            if may_need_more_memory(ending):
                self._check_budget(ending)
            self._flights.fail(flight, after.failed, cause_of(ending), told_of(ending))

    def _check_budget(self, ending: Ending) -> None:
        """A few interviews may need too much. Where the first does, or many do, the budget is too small."""
        self._too_large += 1
        if self._too_large > (_MOST_TOO_LARGE + self._rows // _ROWS_FOR_ANOTHER if self._rows else 0):
            raise BudgetTooSmall(
                f"Interviews end their workers, each alone with all the {format_bytes(self._all_bytes)} that workers"
                f" may use: {told_of(ending)}.",
                budget_bytes=self._all_bytes,
                used_bytes=_peak_bytes(ending),
                fix=spelled(
                    "Give a larger {memory}, or run without {workers}. Everything journaled is safe.",
                    memory=None,
                    workers=None,
                ),
            )

    def _followers(self, flight: Flight, after: Aftermath) -> Iterator[Piece]:
        if after.again:
            yield self._flights.piece(flight, after.again, kills=after.kills)
        for group in after.trials:
            yield self._flights.piece(flight, group, is_trial=True, kills=after.kills)
        if after.last is not None:
            yield self._flights.piece(flight, [after.last], is_last=True, kills=after.kills)

    def _queue(self, piece: Piece, after_seq: int = 0) -> None:
        if after_seq:
            self._held.append((after_seq, piece))
        else:
            (self._last if piece.is_last else self._trials if piece.is_trial else self._waiting).append(piece)

    def _be_alone(self, is_alone: bool) -> None:
        """One worker with all the memory, or each lane's with its part."""
        self._is_alone = is_alone
        first, *others = self._lanes
        for lane in others:
            lane.sleep(is_alone)
        first.is_on_trial = True
        first.restart(self._all_bytes if is_alone else self._all_bytes // len(self._lanes))

    # Giving.

    def _give_trial(self, lane: Lane) -> None:
        line = self._last or self._trials
        if line:
            lane.renew()
            self._give(lane, line.popleft())
        elif not any(piece.is_trial for _, piece in self._held):
            lane.is_on_trial = False

    def _lane_for(self, piece: Piece) -> Lane | None:
        """The least busy that has room: what waits in a worker takes of the memory that its interviews need."""
        room_bytes = self._most_lane_bytes - piece.row_bytes
        lanes = [lane for lane in self._lanes if not (lane.is_on_trial or lane.is_asleep or lane.is_resting)]
        return min((lane for lane in lanes if not lane.pieces or lane.row_bytes <= room_bytes), key=_load, default=None)

    def _give(self, lane: Lane, piece: Piece) -> None:
        if piece.row_bytes <= MOST_PIECE_BYTES:
            lane.give(piece)
            return
        for interview in piece.left.values():  # one: nothing was put beside it
            size = format_bytes(piece.row_bytes)
            message = f"its agent and scenario take {size}, more than a worker can be sent"
            self._flights.fail(piece.flight, interview, Cause.DATA, message)
        self._flights.piece_over(piece.flight)

    def _not_taken(self) -> int:
        return sum(lane.untaken for lane in self._lanes)

    def _in_flight(self) -> int:
        """Interviews that are paid for, or will be; not those that are held back."""
        queued = (len(piece.left) for line in (self._waiting, self._trials, self._last) for piece in line)
        return sum(lane.load for lane in self._lanes) + sum(queued)


def _load(lane: Lane) -> int:
    return lane.load


def _peak_bytes(ending: Ending) -> int:
    match ending:
        case Death():
            return ending.peak_bytes
        case OutOfMemory():
            return ending.used_bytes
        case _:
            return 0
