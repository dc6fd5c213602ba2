"""Parts of a chunk, as they are handed to workers, and what becomes of them when a worker dies.

A worker that ended by its own doing was ended by one of its interviews, and unless it named that one, all are suspects.
They are tried again in halves, each half alone in a new worker, down to one interview. One that ends its worker there
too is tried a last time where memory may be the cause: in the only worker, with all the memory that workers may have.
Only then has it failed.

A worker that was killed from outside gives no reason to suspect its interviews: they are conducted again. After a few
kills they are tried in halves too, so that the others need not be paid again with them, and an interview that has been
lost many times is left undone for a later run. It never fails for that.

So whatever interviews do, and whatever is done to workers, each interview costs a bounded number of workers.
Covers: decisions. Does not cover: carrying them out (interviews.workers.assignment).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.executor import Signal
from headrace.interviews.contract import Chunk, Interview
from headrace.survey.record import AnswerRecord, Usage
from headrace.workers.deaths import DeathCause

MOST_PART_BYTES = 50_000_000
_KILLS_IN_COMPANY = 3
_MOST_KILLS = 10


@dataclass(slots=True)
class ChunkInFlight:
    """A chunk as the controller started it; `parts` counts those that have not ended. `undone` is the reason why
    an interview was left for a later run.
    """

    chunk: Chunk
    parts: int = 0
    signal: Signal | None = None
    undone: str = ""


@dataclass(slots=True)
class ChunkPart:
    """Some interviews of a chunk, on their way through one worker. `is_trial` where they have a new worker for
    themselves, `is_last` where it has all the memory. `kills` counts their workers that were killed from outside before
    any of them had ended.
    """

    id: int
    in_flight: ChunkInFlight
    left: dict[int, Interview]
    is_trial: bool = False
    is_last: bool = False
    kills: int = 0
    epoch: int = 1
    is_taken: bool = False
    count: int = field(init=False)
    row_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        chunk = self.as_chunk()
        self.count = len(self.left)
        self.row_bytes = sum(map(len, chunk.agents.values())) + sum(map(len, chunk.scenarios.values()))

    @property
    def is_single(self) -> bool:
        return self.count == 1

    def as_chunk(self) -> Chunk:
        """What is left of it, with the rows of agents and scenarios that need to travel."""
        given = self.in_flight.chunk
        interviews = list(self.left.values())
        if len(interviews) == len(given.interviews):
            return Chunk(self.id, self.epoch, interviews, given.agents, given.scenarios)
        agents = {interview.agent: given.agents[interview.agent] for interview in interviews}
        scenarios = {interview.scenario: given.scenarios[interview.scenario] for interview in interviews}
        return Chunk(self.id, self.epoch, interviews, agents, scenarios)

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
class Reassignment:
    """What becomes of interviews whose worker died: conducted again, tried in groups alone, tried a last time, failed,
    or left undone. `kills` is for the parts that follow.
    """

    again: list[Interview] = field(default_factory=list[Interview])
    trials: list[list[Interview]] = field(default_factory=list[list[Interview]])
    last: Interview | None = None
    failed: Interview | None = None
    undone: Interview | None = None
    kills: int = 0

    def groups(self) -> Iterator[tuple[list[Interview], bool, bool]]:
        """The interviews to give out again, by part; whether each part is a trial, and the last one."""
        if self.again:
            yield self.again, False, False
        for group in self.trials:
            yield group, True, False
        if self.last is not None:
            yield [self.last], True, True


def reassign(
    part: ChunkPart,
    suspect: int | None,
    cause: DeathCause,
    *,
    may_need_more: bool = False,
    is_host_gone: bool = False,
) -> Reassignment:
    """`suspect` is the interview that the worker named. `may_need_more` where there is more memory, and it may help.
    A worker whose host is gone was not killed for anything in it: that counts against no interview, however often.
    """
    lost = list(part.left.values())
    if not lost:
        return Reassignment()
    if cause is DeathCause.LOST:
        return _after_kill(part, lost, part.kills + (len(lost) == part.count and not is_host_gone))
    if part.is_trial and part.is_single:
        return Reassignment(last=lost[0]) if may_need_more and not part.is_last else Reassignment(failed=lost[0])
    if suspect is not None:
        named = [interview for interview in lost if interview.ordinal == suspect]
        return Reassignment(
            again=[interview for interview in lost if interview.ordinal != suspect], trials=[named] if named else []
        )
    return Reassignment(trials=_halves(lost))


def _after_kill(part: ChunkPart, lost: list[Interview], kills: int) -> Reassignment:
    if kills >= _MOST_KILLS and len(lost) == 1:
        return Reassignment(undone=lost[0])
    if part.is_last:
        return Reassignment(last=lost[0], kills=kills)
    if kills >= _KILLS_IN_COMPANY:
        return Reassignment(trials=_halves(lost), kills=kills)
    return Reassignment(trials=[lost], kills=kills) if part.is_trial else Reassignment(again=lost, kills=kills)


def _halves(lost: list[Interview]) -> list[list[Interview]]:
    middle = (len(lost) + 1) // 2
    return [half for half in (lost[:middle], lost[middle:]) if half]
