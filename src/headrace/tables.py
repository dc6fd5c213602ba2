"""Prints rows of text for people: a table where the terminal is wide enough, else a block of lines for each row.

Does not cover: what the rows are (results.printing, cli), making values safe to show (display), or HTML
(display.html_table).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.table import Table
from rich.text import Text

# A text that is folded into less than this many letters a line is no longer read but deciphered; one that is cut says
# with fewer what it is about.
_NARROWEST, _NARROWEST_CUT = 24, 14
_BETWEEN = 3  # letters between two columns


def print_rows(
    terminal: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str] = (),
    *,
    cut: bool = False,
) -> None:
    """Prints rows under their columns, or below each other where they do not fit; `right` are set flush right.

    A text that is too long for its column is folded; with `cut`, it is cut, so that each row is one line.
    """
    widths = _widths(columns, rows, terminal.width, cut=cut)
    if widths is None:
        _print_blocks(terminal, columns, rows)
        return
    if cut:
        rows = [[_cut(text, width) for text, width in zip(row, widths, strict=True)] for row in rows]
    cells = [(text, width) for row in rows for text, width in zip(row, widths, strict=True)]
    is_folded = any("\n" in text or cell_len(text) > width for text, width in cells)
    # An empty line between rows of several lines each shows where one ends.
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold", leading=int(is_folded))
    for name, width in zip(columns, widths, strict=True):
        table.add_column(Text(name), width=width, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    terminal.print(table)


def table_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide these rows are side by side, with nothing folded."""
    return sum(_wanted(columns, rows)) + _BETWEEN * (len(columns) - 1)


def fits_side_by_side(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int, *, cut: bool) -> bool:
    """Whether the columns fit beside each other, texts folded or cut where they are long."""
    return _widths(columns, rows, room, cut=cut) is not None


def _wanted(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(_text_width, cells)) for cells in zip(columns, *rows, strict=True)]


def _text_width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int, *, cut: bool) -> list[int] | None:
    """The width of each column; None where one would have to be too narrow to read."""
    wanted, narrowest = _wanted(columns, rows), _NARROWEST_CUT if cut else _NARROWEST
    widths = [min(width, max(cell_len(name), narrowest)) for name, width in zip(columns, wanted, strict=True)]
    left = room - sum(widths) - _BETWEEN * (len(columns) - 1)
    if left < 0:
        return None
    for place in sorted(range(len(wanted)), key=lambda place: wanted[place]):  # short columns get whole lines first
        more = min(left, wanted[place] - widths[place])
        widths[place] += more
        left -= more
    return widths


def _cut(text: str, width: int) -> str:
    return text if _text_width(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def _print_blocks(terminal: Console, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows, 1):
        terminal.print(f"[{number}]", style="bold")
        for name, value in zip(columns, row, strict=True):
            line = Text.assemble((f"{name}: ", "dim"), value)
            first, *more = line.wrap(terminal, max(1, terminal.width - 2))
            terminal.print(first)
            for rest in more:
                terminal.print(Text("  ") + rest)
