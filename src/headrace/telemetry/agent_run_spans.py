"""Spans of agent runs, made from what the engine hears of them.

    invoke_agent {task}            an attempt; inside its parent's where it is a child
      execute_tool {step}          a step's function, or a program
      chat {model}                 a reply that the run waited for

A call to a model can outlive the attempt that asked; it has no parent then. Heartbeats have no spans. Does not cover:
the thread that does this (export_thread).
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.exit_causes import ExitCause
from headrace.models.provider import FinishedCall
from headrace.telemetry.conventions import Attributes, captures_content, model_attributes, request_attributes
from headrace.telemetry.export_thread import ExportThread, Work
from headrace.telemetry.otel_export import ModelCall, OtelExport

if TYPE_CHECKING:
    from opentelemetry.trace import Span

_GOES_WELL = frozenset({ExitCause.DONE, ExitCause.PREEMPTED, ExitCause.PARKED})


class AgentRunSpans:
    """Its verbs are called on the engine's loop as things happen; `close` when nothing more will."""

    def __init__(self, path: Path) -> None:
        self._thread = ExportThread()
        self._file = path.name
        self._has_content = captures_content()
        self._open: dict[int, Span] = {}  # of attempts that go on, by run; on the thread only

    def started(self, run: int, attempt: int, task: str, parent: int | None) -> None:
        attributes: Attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": task,
            "headrace.run": self._file,
            "headrace.agent_run.id": run,
            "headrace.agent_run.attempt": attempt,
        }
        self._offer(partial(self._begin, run, parent, attributes, time.time()))

    def ended(self, run: int, cause: ExitCause) -> None:
        self._offer(partial(self._end, run, cause, time.time()))

    def stepped(self, run: int, step: str, took_s: float, *, is_program: bool = False, error: str = "") -> None:
        """A step's function or its program has just ended."""
        attributes: Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": step,
            "gen_ai.tool.type": "extension" if is_program else "function",
        }
        self._offer(partial(self._tool, run, attributes, time.time(), took_s, error))

    def called(self, run: int, call: FinishedCall) -> None:
        """A model that a run asked has replied, or could not."""
        if call.usage.cache_hits:
            return
        held_bytes = len(call.prompt) + len(call.system) + len(call.reply) if self._has_content else 0
        if not self._has_content:
            call = call.without_texts()
        self._thread.offer(partial(self._chat, run, call), held_bytes=held_bytes)

    def close(self) -> None:
        """Wait until everything is sent, for a few seconds at most."""
        self._offer(partial(self._end_all, time.time()))
        self._thread.close()

    def _offer(self, work: Work) -> None:
        self._thread.offer(work)

    # On the thread.

    def _begin(self, run: int, parent: int | None, attributes: Attributes, at: float, export: OtelExport) -> None:
        inside = self._open.get(parent) if parent is not None else None
        self._open[run] = export.begin(f"invoke_agent {attributes['gen_ai.agent.name']}", at, attributes, inside)

    def _end(self, run: int, cause: ExitCause, at: float, export: OtelExport) -> None:
        span = self._open.pop(run, None)
        if span is not None:
            word = cause.name.lower()
            span.set_attribute("headrace.exit", word)
            export.end(span, at, "" if cause in _GOES_WELL else word)

    def _end_all(self, at: float, export: OtelExport) -> None:
        """The engine was left: what still goes on is cut short, and goes on from its journal later."""
        for run in list(self._open):
            self._end(run, ExitCause.LOST, at, export)

    def _tool(
        self, run: int, attributes: Attributes, ended_at: float, took_s: float, error: str, export: OtelExport
    ) -> None:
        name = f"execute_tool {attributes['gen_ai.tool.name']}"
        span = export.begin(name, ended_at - took_s, attributes, self._open.get(run))
        export.end(span, ended_at, error)

    def _chat(self, run: int, call: FinishedCall, export: OtelExport) -> None:
        usage = call.usage
        more: Attributes = {
            **request_attributes(call.model),
            "headrace.calls": max(1, usage.calls),
            "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
            "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
        }
        if not usage.unpriced:
            more["headrace.cost_usd"] = usage.cost
        made = ModelCall(
            model=model_attributes(call.model),
            more=more,
            started_at=call.started_at,
            took_s=call.took_s,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            error=call.error,
            system=call.system,
            prompt=call.prompt,
            answer=call.reply,
        )
        export.chat(made, self._open.get(run))
