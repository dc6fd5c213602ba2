"""Conducts interviews in this process, on this event loop: the executor contract for chunks of interviews.

A fixed number of workers take interviews as they come; one that must wait for a busy model gives its worker back and
returns later. Does not cover: hard memory limits, which need processes of their own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Protocol

from headrace.errors import HeadraceError
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from headrace.interviews.contract import Chunk, Interview, InterviewEvent, Lease, Spec
from headrace.interviews.interview import Interviewer, InterviewInProgress
from headrace.interviews.interview_outbox import InterviewOutbox
from headrace.interviews.job_functions import Functions, agent_settings_with, models_with, survey_with
from headrace.memory.measure.os_limits import ON_LINUX
from headrace.models.address_list import AddressList
from headrace.models.calls import CallLimiter, ModelCalls, OnCharged, PlainCalls, ReplyCache, ServiceCalls
from headrace.models.http_client.reply_room import WITHIN_BUDGETS
from headrace.models.limiter import EndpointState
from headrace.models.provider import Provider
from headrace.models.response_cache import ResponseCache
from headrace.models.services import provider_for
from headrace.models.shared_limiters import SharedLimiters
from headrace.store.run_file.rows import DetailPacker, Row
from headrace.store.run_file.stored_job.embedded_files import EmbeddedFiles
from headrace.survey.known_services import SERVICES
from headrace.survey.model import Model
from headrace.survey.people.agent_functions import AgentFunctions
from headrace.survey.people.agent_settings import SettingsTable
from headrace.survey.prompts import persona
from headrace.survey.record import AnswerRecord, Cause
from headrace.survey.templates import CannotRender
from headrace.survey.values import Fields, decode_fields
from headrace.survey.wording.own_wording import Wording

# How many interviews of a model that never waits run before the loop gets a turn.
_TURN = 64
_CLOSE_WITHIN_S = 5.0
# Of a window, the part that may wait for a commit together.
_GATHERED_PART = 4


class _ChunkInProgress:
    """A chunk, its decoded rows, and how much of it is left."""

    def __init__(self, chunk: Chunk, settings: SettingsTable, wording: Wording) -> None:
        self.chunk = chunk
        self._wording = wording
        self._settings = settings
        self.left = len(chunk.interviews)
        self.signal: Signal | None = None
        self._agents: dict[int, tuple[Fields, str, AgentFunctions | None]] = {}
        self._scenarios: dict[int, Fields] = {}

    def agent(self, position: int) -> tuple[Fields, str, AgentFunctions | None]:
        """An agent's fields, its persona and its functions; shared by the interviews of the chunk. CannotRender where
        its traits do not fit its template.
        """
        if position not in self._agents:
            fields = decode_fields(self.chunk.agents[position])
            settings = self._settings.of(fields)
            functions = AgentFunctions(settings, fields, self._wording) if settings.functions else None
            self._agents[position] = fields, persona(fields, settings, self._wording), functions
        return self._agents[position]

    def scenario(self, position: int) -> Fields:
        if position not in self._scenarios:
            self._scenarios[position] = decode_fields(self.chunk.scenarios[position])
        return self._scenarios[position]

    def is_preempted(self) -> bool:
        return self.signal is Signal.PREEMPT

    def is_stopping(self) -> bool:
        return self.signal is not None


class Limiters(Protocol):
    """The limiters of all models: `models.shared_limiters`, or what stands for it in another process."""

    def limiter(self, model: Model) -> CallLimiter: ...

    def addresses(self, model: Model) -> AddressList | None: ...

    def allow(self, interviews: int) -> None: ...

    def release_stopped(self) -> None: ...

    def close(self) -> None: ...


class InterviewOutOfMemory(MemoryError):
    """A process that may end for it has met its memory limit in this interview."""

    def __init__(self, ordinal: int) -> None:
        super().__init__(f"in interview {ordinal}")
        self.ordinal = ordinal


class InlineExecutor:
    """`functions` are those of the job (interviews.job_functions): they do not travel in a spec.

    `endpoints` and `cache` are shared with whatever else calls models in this process; by default there is no cache.
    `is_expendable` where another process takes over when this one has met its memory limit. `on_charged` hears of each
    call's usage when it ends, long before the row that counts it.
    """

    def __init__(
        self,
        functions: Functions,
        endpoints: Limiters | None = None,
        cache: ResponseCache | ReplyCache | None = None,
        outbox: InterviewOutbox | None = None,
        *,
        is_expendable: bool = False,
        on_charged: OnCharged | None = None,
    ) -> None:
        self._functions = functions
        self._endpoints: Limiters = endpoints or SharedLimiters()
        self._owns_endpoints = endpoints is None
        self._cache = cache
        self._is_expendable = is_expendable
        self._on_charged = on_charged
        self._models: list[ModelCalls] = []
        self._listening: list[tuple[CallLimiter, Callable[[EndpointState, str], None]]] = []
        self._providers: list[Provider] = []
        self._holds_replies_back = False
        self._interviewer: Interviewer | None = None
        self._outbox = outbox or InterviewOutbox()
        self._most_workers = 1
        self._agent_settings = SettingsTable()
        self._chunks: dict[int, _ChunkInProgress] = {}
        self._waiting: deque[tuple[_ChunkInProgress, Interview | InterviewInProgress]] = deque()
        self._later: dict[asyncio.TimerHandle, _ChunkInProgress] = {}
        self._workers: dict[asyncio.Task[None], _ChunkInProgress | None] = {}  # what each one conducts
        self._idle: deque[asyncio.Future[None]] = deque()
        self._embedded: EmbeddedFiles | None = None

    async def open(self, spec: Spec) -> None:
        self._embedded = EmbeddedFiles.use(spec.embedded_in)
        models = models_with(spec, self._functions)
        self._providers = [provider_for(model, self._endpoints.addresses(model)) for model in models]
        self._holds_replies_back = ON_LINUX and all(model.service_name in SERVICES for model in models)
        self._models = [self._calls(position, model, spec) for position, model in enumerate(models)]
        self._outbox.compress = DetailPacker(spec.dictionary).compress
        survey = survey_with(spec, self._functions)
        self._agent_settings = agent_settings_with(spec, self._functions, len(survey))
        self._interviewer = Interviewer(
            survey, self._models, spec.retry, spec.question_models, spec.details, spec.priority
        )

    def _calls(self, position: int, model: Model, spec: Spec) -> ModelCalls:
        provider = self._providers[position]
        if model.service_name == "test":
            return PlainCalls(provider, spec.prices[position] if "price" in model.parameters else None)
        limiter = self._endpoints.limiter(model)
        listener = partial(self._outbox.observe, position)
        limiter.notice_change(provider)  # a new run tries again what was refused before it
        limiter.listen(listener)
        self._listening.append((limiter, listener))
        # As the controller names it: a script's function has another module's name in a process of its own.
        named = Model.from_row(spec.models[position])
        return ServiceCalls(named, provider, limiter, spec.prices[position], self._cache, self._on_charged)

    @property
    def is_instant(self) -> bool:
        """Whether no model ever waits."""
        return self._opened.is_instant

    @property
    def ahead(self) -> int:
        return 0  # what would wait here waits as well where it is

    @property
    def holds_replies_back(self) -> bool:
        return self._holds_replies_back

    def lease(self, lease: Lease) -> None:
        # A model that never waits keeps one worker busy, gains nothing from others, and gathers rows by itself.
        self._most_workers = 1 if self._opened.is_instant else lease.interviews
        self._endpoints.allow(lease.interviews)
        self._outbox.bound(lease.buffer_bytes)
        if lease.most_resident_bytes is not None:
            WITHIN_BUDGETS.bound(self, lease.most_resident_bytes)
        self._outbox.enough_rows = max(1, self._most_workers // _GATHERED_PART)
        self._staff()  # a wider lease serves what already waits

    async def start(self, chunk: Chunk) -> None:
        begun = self._chunks[chunk.id] = _ChunkInProgress(chunk, self._agent_settings, self._opened.wording)
        self._waiting.extend((begun, interview) for interview in chunk.interviews)
        self._staff()

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        begun = self._chunks.get(id)
        if begun is None or begun.chunk.epoch != epoch:
            return
        begun.signal = what
        for handle in [handle for handle, waiting in self._later.items() if waiting is begun]:
            handle.cancel()
            del self._later[handle]
            self._count_down(begun)
        self._endpoints.release_stopped()
        if what is Signal.KILL:
            doomed = [worker for worker, conducted in self._workers.items() if conducted is begun]
            for worker in doomed:
                worker.cancel()
            if doomed and (await asyncio.wait(doomed, timeout=deadline_s))[1]:
                raise TimeoutError(f"chunk {id} would not be killed within {deadline_s} s")
        self._staff()

    def events(self) -> AsyncIterator[Batch[InterviewEvent]]:
        return self._outbox.batches()

    def ack(self, upto: int) -> None:
        self._outbox.ack(upto)

    async def close(self) -> None:
        WITHIN_BUDGETS.unbound(self)
        for handle in self._later:
            handle.cancel()
        workers = list(self._workers)
        for worker in workers:
            worker.cancel()
        if workers:
            await asyncio.wait(workers, timeout=_CLOSE_WITHIN_S)
        for limiter, listener in self._listening:
            limiter.unlisten(listener)
        if self._owns_endpoints:
            self._endpoints.close()
        for provider in self._providers:
            await provider.close()
        if self._embedded is not None:
            self._embedded.close()
            self._embedded = None

    @property
    def _opened(self) -> Interviewer:
        if self._interviewer is None:
            raise HeadraceError("The executor was not opened.")
        return self._interviewer

    def _staff(self) -> None:
        """Have a worker for every interview that waits, as far as the lease goes."""
        wanted = len(self._waiting)
        while self._idle and wanted:
            idle = self._idle.popleft()
            if not idle.done():
                idle.set_result(None)
                wanted -= 1
        for _ in range(min(wanted, self._most_workers - len(self._workers))):
            worker = asyncio.create_task(self._work())
            self._workers[worker] = None
            worker.add_done_callback(self._worker_ended)

    async def _work(self) -> None:
        worker, turn = asyncio.current_task(), 0
        assert worker is not None
        while True:
            while not self._waiting:
                idle = asyncio.get_running_loop().create_future()
                self._idle.append(idle)
                await idle
            begun, task = self._waiting.popleft()
            while self._outbox.is_full:
                await self._outbox.has_room.wait()
            await self._conduct(begun, task, worker)
            del begun, task  # an idle worker must not keep its last interview alive
            turn += 1
            if turn % _TURN == 0:
                await asyncio.sleep(0)

    async def _conduct(
        self, begun: _ChunkInProgress, task: Interview | InterviewInProgress, worker: asyncio.Task[None]
    ) -> None:
        if begun.signal is not None:
            return self._count_down(begun)
        interviewer = self._opened
        try:
            interview = self._begin(begun, task) if isinstance(task, Interview) else task
        except CannotRender as error:
            return self._refuse(begun, task.given if isinstance(task, InterviewInProgress) else task, error)
        self._workers[worker] = begun
        try:
            row = await interviewer.conduct(interview, self._answer_taker(begun, interview), begun.is_preempted)
        except asyncio.CancelledError:
            self._count_down(begun)
            raise
        except MemoryError:
            if self._is_expendable:
                raise InterviewOutOfMemory(interview.given.ordinal) from None
            row = interviewer.failed(interview, Cause.OUT_OF_MEMORY, "the process ran out of memory")
        except Exception as error:  # noqa: BLE001 - whatever one interview meets is recorded with it; the others go on
            row = interviewer.failed(interview, Cause.INTERNAL, f"{type(error).__name__}: {error}")
        finally:
            self._workers[worker] = None
        return self._conducted(begun, interview, row)

    def _begin(self, begun: _ChunkInProgress, interview: Interview) -> InterviewInProgress:
        fields, system, functions = begun.agent(interview.agent)
        made = self._opened.begin(interview, fields, begun.scenario(interview.scenario), system, begun.is_stopping)
        made.functions = functions
        return made

    def _refuse(self, begun: _ChunkInProgress, interview: Interview, error: CannotRender) -> None:
        """Fail an interview whose agent cannot be described: its template names a trait that the agent lacks."""
        fields = decode_fields(begun.chunk.agents[interview.agent])
        scenario = begun.scenario(interview.scenario)
        refused = self._opened.begin(interview, fields, scenario, "", begun.is_stopping)
        message = f"the agent's traits_presentation_template does not fit its traits: {error.message}"
        self._conducted(begun, refused, self._opened.failed(refused, Cause.DATA, message))

    def _conducted(self, begun: _ChunkInProgress, interview: InterviewInProgress, row: Row | None) -> None:
        if row is not None:
            self._outbox.add_row(begun.chunk, row)
        elif interview.resume_after_s is not None and begun.signal is None:
            self._put_back(begun, interview, interview.resume_after_s)
            return
        self._count_down(begun)

    def _answer_taker(
        self, begun: _ChunkInProgress, interview: InterviewInProgress
    ) -> Callable[[int, AnswerRecord], None] | None:
        """The function that gets each answer as it comes; None for a model that never waits: interviews end at once."""
        if self._opened.never_waits(interview.given.model):
            return None
        return lambda ordinal, record: self._outbox.add_answer(begun.chunk, ordinal, record)

    def _count_down(self, begun: _ChunkInProgress) -> None:
        begun.left -= 1
        if begun.left == 0:
            del self._chunks[begun.chunk.id]
            causes = {None: ExitCause.DONE, Signal.KILL: ExitCause.LOST}
            self._outbox.end_chunk(begun.chunk, causes.get(begun.signal, ExitCause.PREEMPTED))

    def _put_back(self, begun: _ChunkInProgress, interview: InterviewInProgress, wait_s: float) -> None:
        def come_back() -> None:
            del self._later[handle]
            self._waiting.append((begun, interview))
            self._staff()

        handle = asyncio.get_running_loop().call_later(wait_s, come_back)
        self._later[handle] = begun

    def _worker_ended(self, worker: asyncio.Task[None]) -> None:
        del self._workers[worker]
        if not worker.cancelled() and (error := worker.exception()) is not None:
            self._outbox.fail(error)
