"""`EngineLoop`: the event loop on which scheduler, engine file and executor meet, in a thread of its own.

Covers: making the parts, opening and closing, reading memory and time, and which part carries out which command.
Does not cover: runs (run_commands, run_events), requests of callers (caller_requests), runs on disk (backlog), or the
caller's thread (engine, loop_access).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

from headrace.agents.commands import AgentCommands
from headrace.agents.context import Surroundings
from headrace.agents.contract import AgentEvent, AgentExecutor
from headrace.agents.engine.agent_requests import CommandsOfHost
from headrace.agents.engine.backlog import Backlog
from headrace.agents.engine.caller_requests import CallerRequests
from headrace.agents.engine.engine_memory import EngineMemory
from headrace.agents.engine.engine_options import EngineOptions
from headrace.agents.engine.engine_parts import HERE, EngineParts, spool_directory
from headrace.agents.engine.engine_writer import EngineWriter
from headrace.agents.engine.event_log import EventLog
from headrace.agents.engine.heartbeat_calls import EngineHeartbeats
from headrace.agents.engine.held_answers import HeldAnswers
from headrace.agents.engine.live_runs import Listeners, LiveRuns
from headrace.agents.engine.run_commands import RunCommands, shortage_in_words
from headrace.agents.engine.run_events import RunEvents
from headrace.agents.engine.scheduler_driver import SchedulerDriver
from headrace.agents.engine.status import EngineStatus, status_of
from headrace.agents.engine.surveys import EngineSurveys
from headrace.agents.inline_agents import InlineAgents
from headrace.agents.model_calls import AgentCalls
from headrace.agents.scheduler.events import (
    Closing,
    DropHost,
    EndRun,
    GrantPermits,
    HostJoined,
    KillHeartbeat,
    KillRun,
    Notice,
    ParkRun,
    PreemptRun,
    Reclaim,
    RecordNotice,
    RecordShortage,
    RejectRun,
    ReserveLess,
    ResumeRun,
    SchedulerCommand,
    SetPriority,
    SkipHeartbeat,
    SkipRun,
    StartHeartbeat,
    StartRun,
    Tick,
)
from headrace.agents.scheduler.scheduler import Scheduler
from headrace.agents.steering.engine_server import EngineAnswers
from headrace.agents.steering.latest_emitted import LatestEmitted
from headrace.agents.task import TaskKind, check_succession, registered_kinds
from headrace.agents.workers.agent_executor import IsolatedAgents
from headrace.agents.workers.engine_workers import EngineWorkers
from headrace.errors import EngineClosed, HeadraceError
from headrace.models.response_cache import ResponseCache
from headrace.models.shared_limiters import SharedLimiters
from headrace.steady_clock import LastingClock
from headrace.store.engine_file.engine_file import EngineFile, Writes
from headrace.store.engine_file.engine_schema import RunState
from headrace.store.home import cache_path
from headrace.survey.model import Model
from headrace.survey.record import Usage
from headrace.threads.crossing import LoopPromise
from headrace.threads.stuck_loop import StuckLoopWatch, stuck_file
from headrace.workers.lender import KEPT_BACK_BYTES
from headrace.workers.local_warden import is_alive

if TYPE_CHECKING:
    from headrace.agents.nodes.cluster_hosts import ClusterHosts
    from headrace.agents.nodes.engine_nodes import EngineNodes
    from headrace.telemetry.agent_run_spans import AgentRunSpans

_READING_EVERY_S = 0.05
_READING_UNDER_PRESSURE_S = 0.02
_CLOSE_WITHIN_S = 10.0
_FORMER_END_WITHIN_S = 3.0
_LOOK_EVERY_S = 0.01


class EngineLoop:
    """Made on the engine's thread, which runs `main`; `opened` gets a result when callers may use it."""

    def __init__(
        self,
        file: EngineFile,
        options: EngineOptions,
        workers: EngineWorkers,
        nodes: EngineNodes | None,
        opened: LoopPromise[None],
    ) -> None:
        self._opened = opened
        self._options = options
        self._workers = workers
        self._nodes = nodes
        self._file = file
        self._spools = spool_directory(file.path)
        try:
            self._assemble(options, workers)
        except BaseException:  # what the file holds is damaged: leave nothing beside it
            self._spools.cleanup()
            raise

    def _assemble(self, options: EngineOptions, workers: EngineWorkers) -> None:
        self._clock = LastingClock(self._file.notes.clock())
        self._writer = EngineWriter(self._file)
        self._writes = Writes(self._file.values.highest("blobs"))
        self._log = EventLog(self._writer, self._writes)
        self._driver = SchedulerDriver(Scheduler(options.queue, options.breaker))
        self._endpoints = SharedLimiters(lambda reach, words: self._log.record(reach.value, words))
        self._calls = AgentCalls(self._endpoints, self._response_cache, self._count_usage)
        self._cache: ResponseCache | None = None
        self._threads = ThreadPoolExecutor(options.workers.slots + 4, thread_name_prefix="headrace-step")
        self._background: set[asyncio.Task[None]] = set()
        spools = Path(self._spools.name)
        self.kinds: dict[str, TaskKind] = registered_kinds()
        self._executor = self._made_executor(spools)
        self._runs = LiveRuns()
        self._answers = HeldAnswers(self._driver, self._executor, self._runs, self._file.steps.result)
        self._listeners = Listeners()
        self._telemetry = self._made_telemetry()
        parts = EngineParts(
            options=options,
            file=self._file,
            writer=self._writer,
            writes=self._writes,
            driver=self._driver,
            executor=self._executor,
            answers=self._answers,
            runs=self._runs,
            listeners=self._listeners,
            emitted=LatestEmitted(),
            kinds=self.kinds,
            log=self._log,
            clock=self._clock,
            gauge=workers.gauge,
            spawn=self._spawn,
            telemetry=self._telemetry,
        )
        self._run_events = RunEvents(parts, self._calls, self._commands_of_host(spools))
        self._run_commands = RunCommands(parts, self._run_events.requests)
        self.backlog = Backlog(parts, self._run_commands)
        self.requests = CallerRequests(parts, self._run_commands, self._run_events, self.backlog)
        self._outside = EngineAnswers(parts, self.requests, self.status)
        self._hosts = self._made_hosts(parts)
        self.heartbeats = EngineHeartbeats(parts, HERE, self._calls, self._threads, spools)
        self._memory = EngineMemory(parts, workers, HERE, self._shrink_caches)
        self._memory.recall_sizes()
        self.surveys = EngineSurveys(
            HERE, parts, self._memory.readings, self._endpoints, self._response_cache, self._memory.read
        )
        # Each of these two closes a circle: what ends or is parked makes room for what waits.
        self._run_commands.on_parked = self.backlog.parked
        self._run_events.submit_child = self.backlog.submit_child
        self._driver.act = self._act
        self._driver.on_idle = self.backlog.feed
        self._writer.beside = lambda: self._memory.history_writes(self._run_commands.ended_count)
        self._closing = asyncio.Event()
        self._failure: BaseException | None = None
        self._watch: StuckLoopWatch | None = None

    def _made_executor(self, spools: Path) -> AgentExecutor:
        if self._nodes is not None:
            return IsolatedAgents(self.kinds, self.register)
        if self._workers.is_isolated:
            return self._workers.agents(HERE, self.kinds, spools, self.register)
        surroundings = Surroundings(spools=spools, register=self._meet_child, meet=self._calls.meet)
        return InlineAgents(_FunctionsByKind(self.kinds), self._threads, surroundings)

    def _made_hosts(self, parts: EngineParts) -> ClusterHosts | None:
        """Loaded where there is a cluster."""
        if self._nodes is None or not isinstance(self._executor, IsolatedAgents):
            return None
        from headrace.agents.nodes.cluster_hosts import ClusterHosts

        return ClusterHosts(self._nodes, parts, self._executor, self._run_events, self._take_all, self._fail)

    def _commands_of_host(self, spools: Path) -> CommandsOfHost:
        """Programs run where the runs are that want them."""
        if self._nodes is not None:
            from headrace.agents.nodes.cluster_hosts import NodeCommands

            return NodeCommands(self._nodes, spools).of
        here = AgentCommands(self._workers.pool, self._workers.lender, spools)
        return lambda _host: here

    def _made_telemetry(self) -> AgentRunSpans | None:
        """Loaded where it is asked for."""
        if not self._options.telemetry:
            return None
        from headrace.telemetry.agent_run_spans import AgentRunSpans

        return AgentRunSpans(self._file.path)

    async def main(self) -> None:
        """Run until `close`, or until the store fails: then all who wait get that error."""
        writing = asyncio.create_task(self._writer.run())
        tasks = {writing, asyncio.create_task(self._take_events()), asyncio.create_task(self._keep_time())}
        try:
            self._watch = StuckLoopWatch(self._options.stuck_after_s, self._report_stuck, stuck_file(self._file.path))
            await self._outlive_former_workers()
            self._begin()
            async with self._outside.steerable():
                closing = asyncio.create_task(self._closing.wait())
                ended, _ = await asyncio.wait({*tasks, closing}, return_when=asyncio.FIRST_COMPLETED)
                closing.cancel()
            for task in ended:
                task.result()
            await self._park_everything(writing)
            if self._failure is not None:
                raise self._failure
        except BaseException as error:
            self._failure = error
            raise
        finally:
            await self._end(tasks)

    def _begin(self) -> None:
        self._writer.write([("UPDATE runs SET state = 'waiting' WHERE state = 'running' AND ended_at IS NULL", ())])
        self._writer.write(self._writes.surveys.engine_opened())
        self._memory.note_warden()
        self._writer.write(self._writes.notes.clock(self._clock.note()))
        for name, why in self._workers.not_preloaded.items():
            self._log.record("not preloaded", f"{name}: {why}")
        joined = HostJoined(
            now_s=time.monotonic(),
            host=HERE,
            slots=self._options.workers.slots,
            limits=self._options.memory,
            kept_back_bytes=KEPT_BACK_BYTES if self._workers.is_isolated else 0,
        )
        self._driver.send(joined)
        self._memory.begin_history()
        self._memory.read()
        if self._nodes is not None and self._hosts is not None:
            self._nodes.listen(self._hosts)
        self._writer.after_commit(self.backlog.look_again)
        self._writer.after_commit(lambda: self._opened.set_result(None))

    async def _outlive_former_workers(self) -> None:
        """Wait for the end of a killed engine's workers: their last steps must not run beside ours."""
        give_up_s = time.monotonic() + _FORMER_END_WITHIN_S
        warden = self._file.notes.former_warden()
        while warden is not None and is_alive(warden) and time.monotonic() < give_up_s:
            await self._a_moment()

    async def _park_everything(self, writing: asyncio.Task[None]) -> None:
        self.backlog.close()
        self.surveys.stop()
        self._driver.send(Closing(now_s=time.monotonic()))
        began_s = time.monotonic()
        while not writing.done() and self._is_closing_worth_waiting_for(time.monotonic() - began_s):
            await self._a_moment()
        self._memory.note_sizes()
        self._writer.write(self._memory.history_writes(self._run_commands.ended_count, is_last=True))
        if not writing.done():
            await asyncio.wait({asyncio.ensure_future(self._writer.flush()), writing}, return_when="FIRST_COMPLETED")

    def _is_closing_worth_waiting_for(self, closing_s: float) -> bool:
        is_busy = bool(self._runs.by_id) or not self.surveys.are_over
        # A reply that comes while a run may reach its next step need not be paid for twice.
        is_replying = bool(self._run_events.requests.calls_in_flight) and closing_s < self._options.grace_s
        return (is_busy or is_replying) and closing_s < _CLOSE_WITHIN_S

    async def _end(self, tasks: set[asyncio.Task[None]]) -> None:
        error = self._failure or EngineClosed(
            "The engine was left before this run ended.", fix="It is parked: open the engine again and it goes on."
        )
        self.backlog.close()
        self.backlog.fail(error)
        self._listeners.fail_all(error)
        await self.heartbeats.close()
        await self._executor.close()
        await self._workers.close()
        left: list[asyncio.Task[Any]] = [*tasks, *self._background, *self.surveys.tasks]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self._calls.close()
        self._endpoints.close()
        if self._watch is not None:
            self._watch.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._cache is not None:
            await asyncio.to_thread(self._cache.close)
        self._spools.cleanup()
        self._writer.close_file()
        if self._telemetry is not None:
            await asyncio.to_thread(self._telemetry.close)

    # What the caller asks for, on this loop.

    def close(self) -> None:
        self._closing.set()

    def register(self, kind: TaskKind) -> None:
        is_new = kind.name not in self.kinds
        self.kinds[kind.name] = kind
        if is_new:
            self.backlog.look_again()

    def reopen(self, model: Model | str | None) -> None:
        self._endpoints.reopen(model)

    def _meet_child(self, kind: TaskKind) -> None:
        check_succession(self.kinds.get(kind.name), kind)
        self.register(kind)

    async def drained(self) -> None:
        """Wait until no run is left that can go on by itself."""
        while self._runs.by_id or self.backlog.has_more or not self.surveys.are_over or self._has_sleepers():
            await self._a_moment()
            await self._writer.flush()

    def _has_sleepers(self) -> bool:
        sleeping = RunState.SLEEPING.value
        return any(state == sleeping and kind in self.kinds for kind, state in self._file.runs.counts())

    @property
    def in_flight(self) -> int:
        """How many agent runs and interviews are in flight."""
        interviews = sum(run.in_flight for run in self.surveys.running.values())
        return self._driver.scheduler.snapshot().running_count + interviews

    def status(self) -> EngineStatus:
        now_s = time.monotonic()
        return status_of(
            snapshot=self._driver.scheduler.snapshot(now_s),
            runs=self._runs.by_id,
            queue_depth=self._options.queue.queue_depth,
            unfinished=self._file.runs.counts(),
            kinds=set(self.kinds),
            heartbeats=self.heartbeats.by_name,
            counts={"ended": self._run_commands.ended_count, "steps": self._run_events.steps_count, **self._log.counts},
            usage=self._file.notes.usage(),
            used_bytes=self._memory.readings.used_bytes,
            peak_bytes=self._memory.readings.peak_bytes,
            layers=self._workers.layers() if self._nodes is None else self._nodes.layers(),
            stuck=self.stuck,
            endpoints=self._endpoints.shown(),
            surveys=self.surveys.shown(),
            nodes=self._nodes.states() if self._nodes is not None else [],
            now_s=now_s,
        )

    @property
    def stuck(self) -> str | None:
        return self._watch.stack if self._watch is not None else None

    # Its own turns.

    async def _a_moment(self) -> None:
        await asyncio.sleep(_LOOK_EVERY_S)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)  # the loop itself would not keep it alive
        task.add_done_callback(self._background_ended)
        return task

    def _background_ended(self, task: asyncio.Task[None]) -> None:
        self._background.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    async def _take_events(self) -> None:
        """Take events without awaiting the journal: those that come meanwhile make its next batch."""
        async for batch in self._executor.events():
            self._take_all(batch.events)

    def _take_all(self, events: list[AgentEvent]) -> None:
        for event in events:
            self._run_events.take(event)
        if events:
            upto = events[-1].seq
            self._writer.after_commit(lambda: self._executor.ack(upto))

    def _fail(self, error: BaseException) -> None:
        """End the engine with this error: all who wait get it."""
        self._failure = error
        self._closing.set()

    async def _keep_time(self) -> None:
        while True:
            if self._watch is not None:
                self._watch.beat()
            self._memory.read()
            now_s = time.monotonic()
            self.backlog.tick(now_s)
            for survey in list(self.surveys.running):
                self.surveys.report(survey)
            due_s = self._driver.scheduler.next_tick_s()
            if due_s is not None and due_s <= now_s:
                self._driver.send(Tick(now_s=now_s))
            self._file.live.check_is_in_place()
            if self._memory.is_history_due:
                self._writer.write(self._memory.history_writes(self._run_commands.ended_count))
            await self._writer.keep_log_short()
            await asyncio.sleep(_READING_EVERY_S if self._memory.readings.is_calm else _READING_UNDER_PRESSURE_S)

    def _report_stuck(self, stack: str) -> None:
        with suppress(HeadraceError):  # a full disk fails the next COMMIT too, which reports it
            self._log.record_now("loop stuck", stack)

    def _response_cache(self) -> ResponseCache | None:
        if self._cache is None:
            self._cache = ResponseCache.open(cache_path(), time.time())
        return self._cache

    def _shrink_caches(self) -> None:
        if self._cache is not None:
            self._cache.shrink()

    def _count_usage(self, usage: Usage) -> None:
        self._writer.write(self._writes.notes.used(usage))

    def _subject(self, note: RecordNotice) -> str:
        """What a notice is about; for one about memory, its level, and its node: the reading has the numbers. For a
        circuit that opened, the failure that opened it too.
        """
        if note.reading is not None and note.notice in (Notice.LEVEL, Notice.NEW_ZERO):
            level = note.reading.pressure.name.lower()
            return level if note.subject == HERE else f"{level} on {note.subject}"
        if note.notice is not Notice.CIRCUIT_OPENED:
            return note.subject
        run_name, reason = self._runs.last_failures.get(note.subject, ("", ""))
        first_line = reason.partition("\n")[0]
        return f"{note.subject}: the run {run_name} failed last: {first_line}"

    def _act(self, command: SchedulerCommand) -> None:
        match command:
            case StartRun():
                self._run_commands.start(command)
            case PreemptRun() | KillRun():
                self._run_commands.stop(command)
            case ResumeRun():
                self._answers.resume(command)
            case SkipRun():
                self._log.record("skipped", command.why.value, run=command.id, reading=command.reading)
            case RecordShortage():
                words = shortage_in_words(command, self._options.memory.gives_up_after_s)
                self._log.record("waits for memory", words, run=command.id, reading=command.reading)
            case EndRun():
                self._run_commands.end(command)
            case ParkRun():
                self._run_commands.park(command)
            case SetPriority():
                self._run_commands.set_priority(command)
            case ReserveLess():
                self._executor.reserve_less(command.id, command.epoch, command.memory_bytes)
            case GrantPermits():
                self.surveys.grant(command)
            case StartHeartbeat():
                self.heartbeats.start(command)
            case KillHeartbeat():
                self.heartbeats.kill(command)
            case SkipHeartbeat():
                self.heartbeats.skip(command)
            case Reclaim():
                if command.host == HERE:  # a node has nothing but workers, which give back what they use by ending
                    self._memory.reclaim()
            case RecordNotice():
                self._log.record(command.notice.value, self._subject(command), reading=command.reading)
            case RejectRun():
                raise AssertionError("only an offer is refused")
            case DropHost():
                assert self._hosts is not None, "this process is not watched for silence"
                self._hosts.drop(command.host)
            case _:
                assert_never(command)


class _FunctionsByKind(dict[str, Callable[..., Any]]):
    """Functions by kind, as they are registered."""

    def __init__(self, kinds: dict[str, TaskKind]) -> None:
        super().__init__()
        self._kinds = kinds

    def __missing__(self, name: str) -> Callable[..., Any]:
        return self._kinds[name].function
