"""`InlineAgents` runs agent functions in this process, on this event loop: the executor contract for agent runs.

Stopping is cooperative: at the next step or checkpoint. After a grace period the function is cancelled, awaited, and
its traceback dropped, so that nothing keeps its locals alive. A function that ignores even that is torn down: what it
still does reaches neither journal nor caller. Does not cover: hard memory limits, which need processes
(agents.workers).
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Executor as Threads
from functools import partial
from typing import Any, TypeAlias, cast

from headrace.agents.agent_outbox import AgentOutbox
from headrace.agents.context import AgentContext, Surroundings, step_that_raised
from headrace.agents.contract import AgentEvent, AgentRun, RemoteError, RunEnded
from headrace.agents.kept_values import decode_arguments, encode_kept
from headrace.agents.link import AgentLink
from headrace.agents.slot_turns import SlotTurns
from headrace.agents.stopping import RunStopped
from headrace.caught_errors import describe_error, forget_frames, is_out_of_memory, line_of
from headrace.errors import ModelUnusable, ProviderUnavailable, RunFailed
from headrace.executor import Batch, Signal
from headrace.exit_causes import ExitCause
from headrace.priority import Priority
from headrace.survey.values import repair_text

AgentFunction: TypeAlias = Callable[..., Awaitable[Any]]

_CANCELS = 3
_CANCEL_EVERY_S = 1.0
_FILE_TOO_LARGE = ". No file that a worker writes may become larger than largest_file= of the engine allows"
_MADE_BY_FUNCTIONS = {ExitCause.DONE, ExitCause.FAILED}


class InlineAgents:
    """`functions` by kind: a name that is not among them cannot be run here."""

    def __init__(
        self,
        functions: Mapping[str, AgentFunction],
        threads: Threads,
        surroundings: Surroundings,
        outbox: AgentOutbox | None = None,
    ) -> None:
        self._functions = functions
        self._threads = threads
        self._surroundings = surroundings
        self._outbox = outbox or AgentOutbox()
        self._running: dict[int, tuple[AgentLink, asyncio.Task[None]]] = {}
        self._slots: dict[int, SlotTurns] = {}

    def start(self, work: AgentRun) -> None:
        slot = self._slots.setdefault(work.slot, SlotTurns(work.slot, self._outbox))
        link = AgentLink(work.id, work.epoch, self._outbox, self._threads, slot)
        task = asyncio.get_running_loop().create_task(self._conduct(work, link))
        task.add_done_callback(partial(self._end_unreported, link))
        self._running[work.id] = link, task

    async def signal(self, id: int, epoch: int, what: Signal, deadline_s: float) -> None:
        link, task = self._running.get(id, (None, None))
        if link is None or task is None or link.epoch != epoch:
            return
        link.stopping.signal = what
        link.stop_waiting()
        if what is not Signal.PREEMPT:
            self._cancel(link, task, _CANCELS)
        elif deadline_s < math.inf:
            asyncio.get_running_loop().call_later(deadline_s, self._grace_is_over, link, task)

    def put(self, id: int, epoch: int, step: str, data: bytes | None, error: RemoteError | None = None) -> None:
        link, _ = self._running.get(id, (None, None))
        if link is not None and link.epoch == epoch:
            link.put(step, data, error)

    def set_priority(self, id: int, epoch: int, priority: Priority) -> None:
        """Runs in one process share its memory: none is lent by priority."""

    def reserve_less(self, id: int, epoch: int, memory_bytes: int) -> None:
        """Nothing is lent to runs in one process."""

    def events(self) -> AsyncIterator[Batch[AgentEvent]]:
        return self._outbox.batches()

    def ack(self, upto: int) -> None:
        self._outbox.ack(upto)

    async def close(self) -> None:
        tasks = [task for _, task in self._running.values()]
        for link, task in self._running.values():
            link.stopping.is_closed = True
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCEL_EVERY_S)

    def _grace_is_over(self, link: AgentLink, task: asyncio.Task[None]) -> None:
        if task.done() or link.stopping.is_closed:
            return
        if link.stopping.in_side_effect:  # cancelled, it would wait for `run.resolve`
            asyncio.get_running_loop().call_later(_CANCEL_EVERY_S, self._grace_is_over, link, task)
            return
        self._cancel(link, task, _CANCELS)

    def _cancel(self, link: AgentLink, task: asyncio.Task[None], tries: int) -> None:
        if task.done() or link.stopping.is_closed:
            return
        if not tries:
            self.end(link, ExitCause.LOST, reason="it ignored being cancelled, and was torn down")
            tear_down(task)
            return
        link.stopping.stop()
        task.cancel()
        asyncio.get_running_loop().call_later(_CANCEL_EVERY_S, self._cancel, link, task, tries - 1)

    async def _conduct(self, work: AgentRun, link: AgentLink) -> None:
        context = AgentContext(work, link, self._surroundings)
        try:
            args, keywords = decode_arguments(work.arguments)
            result = await self._functions[work.kind](context, *args, **keywords)
            encoded = encode_kept(result, f"What {work.kind} returned")
            context.function_returned()
        except RunStopped as stopped:
            forget_frames(stopped)
            self.end(link, stopped.cause, resume_at=stopped.resume_at, step=stopped.step)
        except asyncio.CancelledError as error:
            forget_frames(error)
            self.end(
                link, _cancelled(link), reason="" if link.stopping.signal else "CancelledError: it cancelled itself"
            )
        except MemoryError as error:
            forget_frames(error)
            self.end(link, ExitCause.OUT_OF_MEMORY, reason="MemoryError")
        except GeneratorExit:
            raise  # the loop is gone: the end cannot be reported
        except BaseException as error:  # noqa: BLE001 - even SystemExit is recorded with its run; the others go on
            context.function_raised()
            reason, is_endpoints = _reason(error, step_that_raised(error)), _is_endpoints(error)
            cause = ExitCause.OUT_OF_MEMORY if is_out_of_memory(error) else ExitCause.FAILED
            forget_frames(error)
            self.end(link, cause, reason=reason, is_endpoints=is_endpoints)
        else:
            self.end(link, ExitCause.DONE, result=encoded)
        finally:
            context.close()

    def _end_unreported(self, link: AgentLink, task: asyncio.Task[None]) -> None:
        """Report the end of an attempt whose task ended without doing so: a caller waits for it."""
        if not link.stopping.is_closed:
            error = None if task.cancelled() else task.exception()
            self.end(link, ExitCause.FAILED, reason=f"it ended with {type(error).__name__}")

    def end(
        self,
        link: AgentLink,
        cause: ExitCause,
        *,
        reason: str = "",
        result: bytes | None = None,
        resume_at: float | None = None,
        step: str = "",
        is_endpoints: bool = False,
    ) -> None:
        """Report how the attempt ended, once; later events of it are dropped. After a stop, the stop's cause counts,
        not what the function made of it.
        """
        if link.stopping.is_closed:
            return
        link.stopping.is_closed = True
        del self._running[link.id]
        slot = link.activity.slot
        if slot.leave(link.activity) and self._slots.get(slot.number) is slot:
            del self._slots[slot.number]
        if link.stopping.stopped is not None and cause in _MADE_BY_FUNCTIONS:
            cause, reason, result, is_endpoints = link.stopping.stopped.cause, "", None, False
            resume_at, step = link.stopping.stopped.resume_at, link.stopping.stopped.step
        self._outbox.add(
            RunEnded(
                id=link.id,
                epoch=link.epoch,
                seq=0,
                cause=cause,
                reason=reason,
                result=result,
                resume_at=resume_at,
                step=step,
                is_endpoints=is_endpoints,
            )
        )


def _cancelled(link: AgentLink) -> ExitCause:
    if link.stopping.signal is None:
        return ExitCause.FAILED  # it cancelled itself
    return ExitCause.PREEMPTED if link.stopping.signal is Signal.PREEMPT else ExitCause.LOST


def tear_down(task: asyncio.Task[None]) -> None:
    """End a coroutine that catches being cancelled; one that catches even GeneratorExit is dropped."""
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # retrieved, or asyncio would log it
    cast("Coroutine[Any, Any, None]", task.get_coro()).close()
    task.cancel()


def _is_endpoints(error: BaseException) -> bool:
    """Whether a run failed because a model could not be reached or used, itself or in a child."""
    if isinstance(error, RunFailed):
        return error.is_endpoints
    return isinstance(error, (ProviderUnavailable, ModelUnusable))


def _reason(error: BaseException, step: str) -> str:
    """The error as text for the file, with the step that raised it and the line of the user's code."""
    is_too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
    where = ", ".join(filter(None, [f"in step {step!r}" if step else "", line_of(error)]))
    hint = (_FILE_TOO_LARGE if is_too_large else "") + (f" ({where})" if where else "")
    return repair_text(describe_error(error, hint))[0]
