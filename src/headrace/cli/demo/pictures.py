"""Pictures made of letters: bars, and memory by interviews beside a line of another tool. Covers: any width, ASCII too.

Does not cover: what is drawn (cli.demo.demo_run), or memory over time against a budget (charts.memory_text). Lines
differ in their letters, not only in colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from headrace.charts.bar_text import ASCII, BLOCKS, WIDEST, bar_of
from headrace.units import format_bytes

_ROWS = 10
_MOMENTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The letters that lines are drawn with."""

    ours: str
    theirs: str
    axis: str
    corner: str
    floor: str


_UNICODE = Letters(ours="━", theirs="•", axis="│", corner="└", floor="─")
_ASCII = Letters(ours="=", theirs="*", axis="|", corner="+", floor="-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    group: str
    name: str
    count: int
    style: str


def bar_chart(bars: Sequence[Bar], width: int, *, unicode: bool) -> Text:
    """A line for each bar: its group where that changes, its name, the bar, the count."""
    group_width, name_width = max(len(bar.group) for bar in bars), max(len(bar.name) for bar in bars)
    count_width, most = max(len(f"{bar.count:,}") for bar in bars), max(bar.count for bar in bars)
    room = min(width, WIDEST) - group_width - name_width - count_width - 3
    drawn, last, letters = Text(), "", BLOCKS if unicode else ASCII
    for bar in bars:
        group, last = "" if bar.group == last else bar.group, bar.group
        drawn.append(f"{group:<{group_width}} {bar.name:<{name_width}} ")
        drawn.append(bar_of(bar.count / most, room, letters), bar.style)
        drawn.append(f" {bar.count:,}\n")
    drawn.rstrip()
    return drawn


class MemoryPicture:
    """Memory as it was measured over the course of a run, beside a line of so many bytes an interview.

    It keeps the highest reading of each of some hundred moments, whatever the length of the run.
    """

    def __init__(self, interviews: int, their_bytes_each: int) -> None:
        self._interviews = interviews
        self._their_bytes_each = their_bytes_each
        self._readings: list[int] = [0] * _MOMENTS
        self._start_bytes = 0
        self.done = 0
        self.last_bytes = 0
        self.most_bytes = 0

    def note(self, done: int, memory_bytes: int) -> None:
        if memory_bytes == 0:
            return  # the run has not read it yet
        self._start_bytes = self._start_bytes or memory_bytes
        moment = min(_MOMENTS - 1, done * _MOMENTS // self._interviews)
        self._readings[moment] = max(self._readings[moment], memory_bytes)
        self.done, self.last_bytes = done, memory_bytes
        self.most_bytes = max(self.most_bytes, memory_bytes)

    def finish(self, memory_bytes: int) -> None:
        """Adds the last reading, at the end of the run."""
        self.note(self._interviews, memory_bytes)

    def drawn(self, width: int, *, unicode: bool) -> Text:
        letters = _UNICODE if unicode else _ASCII
        width = min(width, WIDEST)
        top = self._their_bytes(self._interviews)
        labels = ["0", *(format_bytes(top * r / (_ROWS - 1)) if r % 3 == 0 else "" for r in range(1, _ROWS))]
        margin = max(map(len, labels))
        across = width - margin - 2
        drawn, lines = Text(), self._lines(across, top, letters)
        for row in reversed(range(_ROWS)):
            drawn.append(f"{labels[row]:>{margin}} {letters.axis}")
            for letter, run in groupby(lines[row]):
                drawn.append(letter * len(list(run)), {letters.ours: "bold cyan", letters.theirs: "red"}.get(letter))
            drawn.append("\n")
        drawn.append(f"{'':>{margin}} {letters.corner}{letters.floor * across}\n")
        drawn.append(f"{'':>{margin}} {f'{self._interviews:,} interviews':>{across + 1}}\n")
        return drawn.append_text(self._legend(letters))

    def _legend(self, letters: Letters) -> Text:
        each = format_bytes(self._their_bytes_each)
        return Text.assemble(
            (f"{letters.ours * 2} ", "bold cyan"),
            f"measured here: {format_bytes(self.last_bytes)} of memory\n",
            (f"{letters.theirs * 2} ", "red"),
            f"at {each} per interview: {format_bytes(self._their_bytes(self.done))}\n",
            f"({each}: measured with EDSL 1.0.9)",
        )

    def _their_bytes(self, done: int) -> int:
        return self._start_bytes + done * self._their_bytes_each

    def _lines(self, across: int, top: int, letters: Letters) -> list[list[str]]:
        """The rows, lowest first."""
        rows = [[" "] * across for _ in range(_ROWS)]
        if not self.done:
            return rows
        last, known = self.done * (across - 1) // self._interviews, self._start_bytes
        for column in range(last + 1):
            theirs = self._their_bytes(self._interviews * column // max(1, across - 1))
            rows[_row(theirs, top)][column] = letters.theirs
            known = self._reading(column, across) or known
            rows[_row(known, top)][column] = letters.ours
        return rows

    def _reading(self, column: int, across: int) -> int:
        first = column * _MOMENTS // across
        return max(self._readings[first : max(first + 1, (column + 1) * _MOMENTS // across)])


def _row(amount: int, top: int) -> int:
    return min(_ROWS - 1, round(amount * (_ROWS - 1) / top))
