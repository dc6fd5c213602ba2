"""`Replay`: what an attempt finds in the journal of its run, and whether the program's steps are still the same.

Covers: results by name, changed steps, renamed side effects, side effects that the attempt does not reach. Does not
cover: how a difference reaches events and log (engine.run_events), digests (`step_marks`).
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.agents.contract import AgentRun
from headrace.agents.step_marks import StepMark
from headrace.errors import StepChanged

_MOST_REPORTED = 10  # in one attempt: of a function that differs everywhere, the first differences are enough
_CHANGED = (
    "Put the old code back; or give the step another name, to have it run as it is now; or open the engine without"
    " strict=True, to go on with the journaled result. Then await run.retry()."
)
_RENAMED = (
    "If it is the same effect, name it {former!r} again, and it is not done twice. If it is another one, give it"
    " arguments of its own, or open the engine without strict=True. Then await run.retry()."
)
_UNREACHED = "its side effect was journaled in an earlier attempt, and this one came to its end without it"
_PUT_BACK = "Put the step back, or open the engine without strict=True. Then await run.retry()."


class Replay:
    """`steps` are results that were not asked for yet, `started` side effects that have no result."""

    def __init__(self, work: AgentRun) -> None:
        self.steps = dict(work.steps)
        self.started = set(work.started)
        self._again = frozenset(work.again)
        self._marks = work.marks
        self._effects = {name: mark for name in work.effects if (mark := self._mark(name)) is not None}
        self._is_strict = work.is_strict
        self._unreported = _MOST_REPORTED

    def knows(self, name: str) -> bool:
        return name in self.steps or name in self.started

    def changed(self, name: str, mark: bytes) -> str:
        """How a journaled step differs from what the program has under its name; empty where it does not."""
        self._effects.pop(name, None)
        kept, now = self._mark(name), StepMark.read(mark)
        if kept is None or now is None:
            return ""
        parts = now.differs_in(kept)
        return self._report(name, f"it was journaled with {' and '.join(parts)}", fix=_CHANGED) if parts else ""

    def renamed(self, name: str, mark: bytes) -> str:
        """Asked before a side effect that the journal does not have: whether it has it under another name."""
        now = StepMark.read(mark)
        if now is None or not self._effects or name in self._again:
            return ""
        former = next((other for other, kept in self._effects.items() if now.is_same_effect(kept)), None)
        if former is None:
            return ""
        what = f"its side effect was journaled as {former!r}, with the same function and arguments"
        return self._report(name, what, fix=_RENAMED.format(former=former))

    def unreached(self, section: int) -> Iterator[tuple[str, str]]:
        """At the end of a function that began behind checkpoint `section`: side effects that it did not come to."""
        for name, mark in self._effects.items():
            if mark.section >= section and (difference := self._report(name, _UNREACHED, fix=_PUT_BACK)):
                yield name, difference

    def _mark(self, name: str) -> StepMark | None:
        return StepMark.read(self._marks.get(name, b""))

    def _report(self, name: str, what: str, *, fix: str) -> str:
        if self._is_strict:
            raise StepChanged(name, what, fix=fix)
        self._unreported -= 1
        return what if self._unreported >= 0 else ""
