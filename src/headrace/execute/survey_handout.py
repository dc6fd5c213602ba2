"""Which worker gets which interviews, and when a chunk must wait.

Covers: what no worker has yet, in order; room in workers; interviews of a dead worker, handed out again, those it may
have died of one by one in the end. Does not cover: who is suspected (execute.survey_pieces), one worker
(execute.survey_lane), what comes back (execute.isolated_surveys).
"""

from __future__ import annotations

import asyncio
from collections import deque

from headrace.execute.survey_endings import cause_of, is_to_blame, told_of
from headrace.execute.survey_flights import Flights
from headrace.execute.survey_lane import Lane
from headrace.execute.survey_pieces import MOST_PIECE_BYTES, Flight, Piece, aftermath, portions
from headrace.execute.worker_handle import Ending
from headrace.survey.record import Cause
from headrace.units import format_bytes

MOST_WAITING = 10  # chunks that no worker has taken yet


class Handout:
    """Rows of agents and scenarios may take `most_lane_bytes` in a worker."""

    def __init__(self, lanes: list[Lane], flights: Flights, most_lane_bytes: int) -> None:
        self._lanes = lanes
        self._flights = flights
        self._most_lane_bytes = most_lane_bytes
        self._waiting: deque[Piece] = deque()
        self._trials: deque[Piece] = deque()
        self._room = asyncio.Event()
        self._is_over = False

    async def start(self, flight: Flight) -> None:
        """Returns when its pieces are with workers that keep up."""
        for group in portions(flight.chunk, min(MOST_PIECE_BYTES, self._most_lane_bytes)):
            self._waiting.append(self._flights.piece(flight, group))
        self.assign()
        while not self._is_over and (self._waiting or self._not_taken() > MOST_WAITING):
            self._room.clear()
            await self._room.wait()

    def assign(self) -> None:
        for lane in self._lanes:
            if lane.is_on_trial and not lane.pieces:
                if self._trials:
                    lane.renew()
                    self._give(lane, self._trials.popleft())
                else:
                    lane.is_on_trial = False
        while self._waiting and (lane := self._lane_for(self._waiting[0])) is not None:
            self._give(lane, self._waiting.popleft())
        self._room.set()

    def taken(self, lane: Lane, piece: int) -> None:
        if piece in lane.pieces:
            lane.pieces[piece].is_taken = True
        self._room.set()

    def again(self, lane: Lane, ending: Ending) -> None:
        """Hand the interviews of a dead worker out again: those it may have died of one by one in the end."""
        lost, lane.pieces = lane.pieces, {}
        is_blamed = lane.opened.is_set() and is_to_blame(ending)
        for piece in lost.values():
            flight = piece.flight
            if flight.signal is None:
                after = aftermath(piece, lane.suspect, is_blamed=is_blamed)
                if after.again:
                    self._waiting.append(self._flights.piece(flight, after.again))
                for group in after.trials:
                    self._trials.append(self._flights.piece(flight, group, is_trial=True))
                if after.failed is not None:
                    self._flights.fail(flight, after.failed, cause_of(ending), told_of(ending))
            self._flights.piece_over(flight)
        lane.is_on_trial = bool(self._trials)
        self.assign()

    def drop(self, flight: Flight) -> None:
        """What no worker has yet."""
        for line in (self._waiting, self._trials):
            for piece in [piece for piece in line if piece.flight is flight]:
                line.remove(piece)
                self._flights.piece_over(flight)
        self._room.set()

    def stop(self) -> None:
        """Nobody need wait any more: there are no workers to wait for."""
        self._is_over = True
        self._room.set()

    def _lane_for(self, piece: Piece) -> Lane | None:
        """The least busy that has room: what waits in a worker takes of the memory that its interviews need."""
        room_bytes = self._most_lane_bytes - piece.row_bytes
        lanes = [lane for lane in self._lanes if not lane.is_on_trial]
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


def _load(lane: Lane) -> int:
    return lane.load
