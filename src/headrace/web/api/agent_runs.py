"""The agent runs of an engine page by page, and one of them: its steps, its children, what befell it."""

from __future__ import annotations

import re
import time
from enum import Enum
from typing import Annotated

import msgspec

from headrace.agents.steering.engine_client import emitted_by
from headrace.errors import NotSteerable
from headrace.store.engine_file import engine_queries
from headrace.store.engine_file.engine_queries import AgentRunRow
from headrace.store.engine_file.engine_reader import EngineReader, reading_engine
from headrace.store.engine_file.engine_schema import FAILED_STATES, RunState
from headrace.web.api.engine_events import EventShown
from headrace.web.api.engine_summary import engine_file
from headrace.web.operations import READ_TIMEOUT_S, PageOperation
from headrace.web.page_cursors import cursor_of, place_at
from headrace.web.shown_files import NotShown, ShownFiles

_MOST_RUNS = 200
_MOST_STEPS, _MOST_EVENTS, _MOST_CHILDREN = 200, 100, 50
_MOST_TEXT_BYTES = 4_000
_SEARCHED_AT_ONCE, _SEARCH_S = 20_000, 0.7 * READ_TIMEOUT_S
_STEP_WORDS = {
    "ask": "ask a model",
    "run": "call another agent",
    "command": "run a program",
    "sleep": "sleep",
    "receive": "receive a message",
    "waited": "waited for a message",
}
_MADE_UP = re.compile(rf"\$({'|'.join(_STEP_WORDS)})-")  # of steps that their agent has given no name
RunNumber = Annotated[int, msgspec.Meta(ge=1, le=1 << 62)]


class NoSuchRun(NotShown):
    """The engine's file has no run with this number."""

    def __init__(self, number: int) -> None:
        super(NotShown, self).__init__(f"There is no run {number} in this file.", fix="See the list of its runs.")


class ChosenState(Enum):
    """Which runs are listed: a state as it is shown, all, or all unfinished ones; `failed` are all that ended without a
    result and were not cancelled.
    """

    ANY = "any"
    UNFINISHED = "unfinished"
    WAITING = "waiting"
    RUNNING = "running"
    SLEEPING = "sleeping"
    RECEIVING = "waiting for a message"
    UNDECIDED = "undecided"
    DONE = "done"
    FAILED = "failed"
    TIMED_OUT = "timed out"
    OUT_OF_MEMORY = "out of memory"
    LOST = "lost"
    BUDGET_TOO_SMALL = "memory budget too small"
    CANCELLED = "cancelled"

    @property
    def states(self) -> tuple[RunState, ...]:
        match self:
            case ChosenState.ANY:
                return tuple(RunState)
            case ChosenState.UNFINISHED:
                return tuple(state for state in RunState if not state.is_final)
            case ChosenState.FAILED:
                return tuple(state for state in RunState if state in FAILED_STATES)
            case _:
                return (RunState[self.name],)


class RunsAsked(msgspec.Struct, frozen=True):
    engine: str
    state: ChosenState = ChosenState.ANY
    limit: Annotated[int, msgspec.Meta(ge=1, le=_MOST_RUNS)] = 50
    cursor: str = ""


class AgentRunLine(msgspec.Struct, frozen=True, kw_only=True):
    """`preempted` counts how often it was, `deaths` how often it ran out of memory or lost its worker, `failures` its
    failed attempts, by the events that the file keeps. `error` is the first line of why it failed, or the step that
    waits for a decision.
    """

    number: int
    name: str
    kind: str
    priority: str
    state: str
    attempts: int
    preempted: int
    deaths: int
    failures: int
    error: str
    submitted_at: float
    ended_at: float | None

    @classmethod
    def of(cls, row: AgentRunRow, counted: dict[int, tuple[int, int]]) -> AgentRunLine:
        deaths, failures = counted.get(row.id, (0, 0))
        return cls(
            number=row.id,
            name=row.name,
            kind=row.kind,
            priority=row.priority.name,
            state=row.state.word,
            attempts=row.attempts,
            preempted=row.preempted,
            deaths=max(deaths, row.deaths),
            failures=max(failures, row.failures),
            error=row.error.partition("\n")[0],
            submitted_at=row.submitted_at,
            ended_at=row.ended_at,
        )


class AgentRunsPage(msgspec.Struct, frozen=True):
    """The latest first; `next` is the cursor of the next page, null where there is none. Where a search takes too long,
    `searched_to` is the earliest run that it has come to, and `next` goes on from there.
    """

    runs: list[AgentRunLine]
    next: str | None
    searched_to: int | None = None


class StepShown(msgspec.Struct, frozen=True):
    """`label` is its name, in words where the engine made that up. `started_at` is known of side effects only;
    `finished_at` is null where one was cut short or is under way.
    """

    name: str
    label: str
    has_side_effect: bool
    started_at: float | None
    finished_at: float | None
    result_bytes: int


class OneAgentRun(msgspec.Struct, frozen=True):
    """`text` asks for arguments, result and checkpoint, which agents and models have written."""

    engine: str
    number: RunNumber
    text: bool = False


class AgentRunShown(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its latest steps, oldest first, and events, latest first. `undecided_step` is the side effect that
    waits for a decision; `can` are the things that can be done about the run while an engine has the file open. `texts`
    are cut, and there only where they were asked for.
    """

    run: AgentRunLine
    parent: int | None
    error: str
    undecided_step: str
    can: list[str]
    steps: list[StepShown]
    events: list[EventShown]
    children: list[AgentRunLine]
    checkpoints: int
    checkpoint_at: float | None
    messages_waiting: int
    truncated: bool
    texts: dict[str, str]


class EmittedShown(msgspec.Struct, frozen=True):
    at: float
    text: str


class EmittedPage(msgspec.Struct, frozen=True):
    """What a run emitted lately, oldest first: an engine keeps the latest 200 of all its runs, and only in memory."""

    events: list[EmittedShown]


class EmittedAsked(msgspec.Struct, frozen=True):
    engine: str
    number: RunNumber


class _RunPlace(msgspec.Struct, frozen=True):
    before: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


def _runs(files: ShownFiles, asked: RunsAsked) -> AgentRunsPage:
    file = engine_file(files, asked.engine)
    question = (file.id, asked.state.value)
    before = place_at(asked.cursor, question, _RunPlace).before if asked.cursor else None
    with reading_engine(file.path, READ_TIMEOUT_S) as reader:
        found, end = _searched(reader, asked.state.states, before, asked.limit + 1)
        shown = _lines_of(reader, found[: asked.limit])
    if len(found) > asked.limit:
        return AgentRunsPage(shown, cursor_of(_RunPlace(shown[-1].number), question))
    if end is not None:
        return AgentRunsPage(shown, cursor_of(_RunPlace(end), question), searched_to=end)
    return AgentRunsPage(shown, None)


def _lines_of(reader: EngineReader, rows: list[AgentRunRow]) -> list[AgentRunLine]:
    counted = engine_queries.deaths_and_failures(reader, tuple(row.id for row in rows))
    return [AgentRunLine.of(row, counted) for row in rows]


def _searched(
    reader: EngineReader, states: tuple[RunState, ...], before: int | None, most: int
) -> tuple[list[AgentRunRow], int | None]:
    """The latest runs in these states before one, and the earliest that was looked at, None where that is the first of
    all: to find a few among a million may take longer than a page may.
    """
    until, found = time.monotonic() + _SEARCH_S, list[AgentRunRow]()
    while ids := engine_queries.ids_before(reader, before, _SEARCHED_AT_ONCE):
        found += engine_queries.agent_runs(reader, states, ids, most - len(found))
        before = ids.start
        if len(found) >= most or time.monotonic() > until:
            return found, before
    return found, None


def _run(files: ShownFiles, asked: OneAgentRun) -> AgentRunShown:
    file = engine_file(files, asked.engine)
    with reading_engine(file.path, READ_TIMEOUT_S) as reader:
        row = engine_queries.agent_run(reader, asked.number)
        if row is None:
            raise NoSuchRun(asked.number)
        steps = engine_queries.latest_steps(reader, row.id, _MOST_STEPS + 1)
        events = engine_queries.events_before(reader, run=row.id, most=_MOST_EVENTS + 1)
        (line,) = _lines_of(reader, [row])
        children = _lines_of(reader, engine_queries.children_of(reader, row.id, _MOST_CHILDREN + 1))
        checkpoint = engine_queries.checkpoint_of(reader, row.id)
        waiting = engine_queries.waiting_messages(reader, row.id)
        texts = engine_queries.kept_texts(reader, row.id, _MOST_TEXT_BYTES) if asked.text else {}
    is_cut = len(steps) > _MOST_STEPS or len(events) > _MOST_EVENTS or len(children) > _MOST_CHILDREN
    return AgentRunShown(
        run=line,
        parent=row.parent,
        error="" if row.state is RunState.UNDECIDED else row.error,
        undecided_step=row.error if row.state is RunState.UNDECIDED else "",
        can=_can(row.state),
        steps=[
            StepShown(
                each.name, _label(each.name), each.has_side_effect, each.started_at, each.finished_at, each.result_bytes
            )
            for each in steps[-_MOST_STEPS:]
        ],
        events=[EventShown.of(each) for each in events[:_MOST_EVENTS]],
        children=children[:_MOST_CHILDREN],
        checkpoints=0 if checkpoint is None else checkpoint.number,
        checkpoint_at=None if checkpoint is None else checkpoint.made_at,
        messages_waiting=waiting,
        truncated=is_cut,
        texts=texts,
    )


def _label(step: str) -> str:
    found = _MADE_UP.match(step)
    return _STEP_WORDS[found[1]] if found else step


def _can(state: RunState) -> list[str]:
    if state in FAILED_STATES:
        return ["retry"]
    if state.is_final:
        return []
    return ["resolve", "send", "cancel"] if state is RunState.UNDECIDED else ["send", "cancel"]


def _emitted(files: ShownFiles, asked: EmittedAsked) -> EmittedPage:
    file = engine_file(files, asked.engine)
    try:
        found = emitted_by(file.path, asked.number)
    except NotSteerable:
        found = ()
    return EmittedPage([EmittedShown(each.at, each.text) for each in found])


AGENT_RUNS = PageOperation(
    name="agent_runs",
    summary="The agent runs of an engine, the latest first.",
    path="/engines/{engine}/runs",
    parameters=RunsAsked,
    reply=AgentRunsPage,
    call=_runs,
)
AGENT_RUN = PageOperation(
    name="agent_run",
    summary="One agent run: its steps, events and children; its texts where they are asked for.",
    path="/engines/{engine}/runs/{number}",
    parameters=OneAgentRun,
    reply=AgentRunShown,
    call=_run,
)
EMITTED = PageOperation(
    name="emitted",
    summary="What an agent run emitted lately, while its engine has the file open.",
    path="/engines/{engine}/runs/{number}/emitted",
    parameters=EmittedAsked,
    reply=EmittedPage,
    call=_emitted,
)
