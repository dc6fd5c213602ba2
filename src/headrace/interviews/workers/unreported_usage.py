"""What a worker's interviews have been charged and no row or answer has told of yet: what its death would hide.

Covers: keeping it by interview and question. Does not cover: counting it (interviews.workers.chunks_in_flight tells it
as Spent).
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.survey.record import Usage


class UnreportedUsage:
    def __init__(self) -> None:
        self._usage: dict[int, dict[int, Usage]] = {}  # by ordinal and question; bounded by the window

    def charge(self, ordinal: int, question: int, usage: Usage) -> None:
        """`usage` is of all calls for the question so far."""
        self._usage.setdefault(ordinal, {})[question] = usage

    def answered(self, ordinal: int, question: int) -> None:
        """An answer has come that counts its own calls."""
        if (questions := self._usage.get(ordinal)) is not None:
            questions.pop(question, None)

    def sealed(self, ordinals: Iterable[int]) -> None:
        """Rows have come that count all of their calls."""
        if self._usage:  # not with models that charge nothing
            for ordinal in ordinals:
                self._usage.pop(ordinal, None)

    def take(self, ordinals: Iterable[int]) -> Usage:
        """What no row of these will tell; forgotten here."""
        taken = Usage()
        for ordinal in ordinals:
            for usage in self._usage.pop(ordinal, {}).values():
                taken.include(usage)
        return taken
