"""The executor contract for interviews: what a survey's controller and an executor send each other.

    controller                                executor
      open(spec) ------------------------------> once: the survey, the models, prices
      lease(...) ------------------------------> how much may be in flight and in memory
      start(Chunk) ----------------------------> returns when accepted
      <------- Rows, Answers, Spent, Observed --
      <---------------------------- ChunkEnded -  the last event of a chunk

Covers: the chunk and its events. Does not cover: the calls that agent runs share (executor), deciding what to start
(interviews.run), or how an interview is conducted (interviews.interview).
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import msgspec

from headrace.executor import Executor, ExecutorEvent
from headrace.exit_causes import ExitCause
from headrace.limits import RetryLimits
from headrace.models.limiter import EndpointState
from headrace.plan.prices import Price
from headrace.priority import Priority
from headrace.store.run_file.rows import RowBatch
from headrace.survey.record import AnswerRecord, DetailShape, Usage


class Spec(msgspec.Struct, frozen=True):
    """What all work of a job shares. Functions do not travel: an executor has them, or the work cannot run there."""

    survey: bytes
    models: list[bytes]
    prices: list[Price | None]
    dictionary: bytes
    retry: RetryLimits
    question_models: dict[int, int] = {}  # the number in `models` of a question's own model, by its position
    agent_settings: bytes = b""  # a SettingsTable
    details: DetailShape = DetailShape.WHOLE
    priority: Priority = Priority.NORMAL  # of its calls, beside others to the same model
    embedded_in: str = ""  # the run file that holds the contents of files in prompts, where there is one on this host


class Interview(msgspec.Struct, array_like=True):
    """One interview to conduct. `kept` are answers it already has; `uncounted` what they cost, if not yet counted."""

    ordinal: int
    iteration: int
    agent: int
    scenario: int
    model: int
    kept: list[AnswerRecord] = []
    uncounted: Usage | None = None


class Chunk(msgspec.Struct):
    """Some interviews, with the rows of agents and scenarios they need, by position."""

    id: int
    epoch: int
    interviews: list[Interview]
    agents: dict[int, bytes]
    scenarios: dict[int, bytes]


class Lease(msgspec.Struct, frozen=True):
    """What the executor may use: interviews at once, and bytes of finished work that wait for an ack. The job's budget
    has room for `affordable` interviews, those in flight among them: none that was lost is conducted again beyond it.
    An executor in the controller's process holds large replies back that would make that larger than
    `most_resident_bytes`.
    """

    interviews: int
    buffer_bytes: int
    affordable: int | None = None
    most_resident_bytes: int | None = None


class Rows(ExecutorEvent):
    """Interviews that ended, as the store's statements take them."""

    rows: RowBatch


class Answers(ExecutorEvent):
    """Answers of interviews still in flight: (ordinal, record)."""

    answers: list[tuple[int, AnswerRecord]]


class Spent(ExecutorEvent):
    """Calls that were paid for and that no row or answer counts: their worker has ended, or their interview was given
    up. Of the calls in `usage`, `unanswered` had no reply yet: what they took is not known. Where it is acknowledged,
    `Lease.affordable` counts it.
    """

    usage: Usage
    unanswered: int = 0


class Observed(ExecutorEvent):
    """The state of a model's endpoint has changed. This event belongs to no chunk: `id` and `epoch` are 0."""

    model: int
    state: EndpointState
    reason: str = ""


class ChunkEnded(ExecutorEvent):
    """The last event of a chunk. `reason` says why interviews of it were left for a later run, where some were."""

    cause: ExitCause
    reason: str = ""


InterviewEvent: TypeAlias = Rows | Answers | Spent | Observed | ChunkEnded


class InterviewExecutor(Executor[InterviewEvent], Protocol):
    @property
    def ahead(self) -> int:
        """How many interviews it would have wait beside those it may conduct at once; known once it is open."""
        ...

    @property
    def holds_replies_back(self) -> bool:
        """Whether large replies wait outside this process's memory until it has room; known once it is open."""
        ...

    async def open(self, spec: Spec) -> None: ...

    def lease(self, lease: Lease) -> None: ...

    async def start(self, chunk: Chunk) -> None: ...
