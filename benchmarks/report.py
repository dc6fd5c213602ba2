"""How a measure is shown: a table of what was aimed at, what was found, and what the peer needs."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import compress

NOT_MEASURED = "not measured"
_HEADINGS = ("", "target", "before", "measured", "peer", "")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `ok` is None where nothing was aimed at; `before` is a figure of an earlier commit, recorded then."""

    name: str
    measured: str
    target: str = ""
    ok: bool | None = None
    peer: str = ""
    before: str = ""

    def cells(self) -> tuple[str, ...]:
        verdict = "" if self.ok is None else "OK" if self.ok else "MISSED"
        return (self.name, self.target, self.before, self.measured, self.peer, verdict)


@dataclass(slots=True)
class Table:
    """Lines, and notes that say how they were measured."""

    title: str
    lines: list[Line]
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        is_shown = [heading != "before" or any(line.before for line in self.lines) for heading in _HEADINGS]
        rows = [tuple(compress(row, is_shown)) for row in (_HEADINGS, *(line.cells() for line in self.lines))]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        shown = [_aligned(row, widths) for row in rows]
        return "\n".join([self.title, *shown, *(f"  ({note})" for note in self.notes)])


def megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:.1f} MB"


def loops(times_ms: Iterable[float]) -> str:
    """The note on the fixed loop: it tells a slow machine from slow code."""
    times = sorted(times_ms)
    return f"a fixed Python loop took {times[0]:.0f} to {times[-1]:.0f} ms of CPU beside this"


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    return ("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))).rstrip()
