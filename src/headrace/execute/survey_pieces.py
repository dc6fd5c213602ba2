"""Parts of a chunk, as they are handed to workers, and what becomes of them when a worker dies.

Nobody knows which of a dead worker's interviews killed it, unless it said so. Those under suspicion are tried again in
halves, each alone in a new worker, down to one interview; one that kills its worker there too has failed.
So whatever interviews do, each costs a bounded number of workers. Covers: decisions. Does not cover: doing it
(execute.survey_handout).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.execute.contract import Chunk, Interview, Signal
from headrace.survey.record import AnswerRecord, Usage

MOST_PIECE_BYTES = 50_000_000


@dataclass(slots=True)
class Flight:
    """A chunk as the controller started it; `pieces` are those that have not ended."""

    chunk: Chunk
    pieces: int = 0
    signal: Signal | None = None


@dataclass(slots=True)
class Piece:
    """Some interviews of a chunk, on their way through one worker. `is_trial` where they are under suspicion."""

    id: int
    flight: Flight
    left: dict[int, Interview]
    is_trial: bool = False
    is_taken: bool = False
    is_single: bool = field(init=False)
    row_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        chunk = self.as_chunk()
        self.is_single = len(self.left) == 1
        self.row_bytes = sum(map(len, chunk.agents.values())) + sum(map(len, chunk.scenarios.values()))

    def as_chunk(self) -> Chunk:
        """What is left of it, with the rows of agents and scenarios that need to travel."""
        given = self.flight.chunk
        interviews = list(self.left.values())
        if len(interviews) == len(given.interviews):
            return Chunk(self.id, given.epoch, interviews, given.agents, given.scenarios)
        agents = {interview.agent: given.agents[interview.agent] for interview in interviews}
        scenarios = {interview.scenario: given.scenarios[interview.scenario] for interview in interviews}
        return Chunk(self.id, given.epoch, interviews, agents, scenarios)

    def answered(self, ordinal: int, record: AnswerRecord) -> None:
        """An answer that is journaled: another worker will not ask for it again."""
        interview = self.left.get(ordinal)
        if interview is not None:
            interview.kept = [*(kept for kept in interview.kept if kept.question != record.question), record]
            interview.uncounted = interview.uncounted or Usage()
            interview.uncounted.add(record)


def portions(chunk: Chunk, most_bytes: int) -> Iterator[list[Interview]]:
    """The interviews of a chunk in groups whose rows take so much at most; larger only where one interview's do."""
    if sum(map(len, chunk.agents.values())) + sum(map(len, chunk.scenarios.values())) <= most_bytes:
        yield chunk.interviews
        return
    group: list[Interview] = []
    agents: set[int] = set()
    scenarios: set[int] = set()
    size_bytes = 0
    for interview in chunk.interviews:
        more_bytes = len(chunk.agents[interview.agent]) if interview.agent not in agents else 0
        more_bytes += len(chunk.scenarios[interview.scenario]) if interview.scenario not in scenarios else 0
        if group and size_bytes + more_bytes > most_bytes:
            yield group
            group, agents, scenarios = [], set(), set()
            size_bytes, more_bytes = 0, len(chunk.agents[interview.agent]) + len(chunk.scenarios[interview.scenario])
        group.append(interview)
        agents.add(interview.agent)
        scenarios.add(interview.scenario)
        size_bytes += more_bytes
    yield group


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """What becomes of interviews whose worker died: run again, tried alone, or failed."""

    again: list[Interview] = field(default_factory=list[Interview])
    trials: list[list[Interview]] = field(default_factory=list[list[Interview]])
    failed: Interview | None = None


def aftermath(piece: Piece, suspect: int | None, *, is_blamed: bool) -> Aftermath:
    """`suspect` is the interview that the worker named; not `is_blamed` where the death had nothing to do with it."""
    lost = list(piece.left.values())
    if not is_blamed or not lost:
        return Aftermath(again=lost)
    if piece.is_trial and piece.is_single:
        return Aftermath(failed=lost[0])
    if suspect is not None:
        named = [interview for interview in lost if interview.ordinal == suspect]
        return Aftermath(
            again=[interview for interview in lost if interview.ordinal != suspect], trials=[named] if named else []
        )
    middle = (len(lost) + 1) // 2
    return Aftermath(trials=[half for half in (lost[:middle], lost[middle:]) if half])
