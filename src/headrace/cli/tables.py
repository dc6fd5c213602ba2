"""Prints rows of text for people: a table where the terminal is wide enough, else a block of lines for each row.

Does not cover: what the rows are (cli.output), or making values safe to show (cli.terminal.showable).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from headrace.cli.terminal import Terminal

# A text that is folded into less than this many letters a line is no longer read but deciphered.
_NARROWEST = 24
_BETWEEN = 3  # letters between two columns


def print_rows(
    terminal: Terminal, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()
) -> None:
    """Prints rows under their columns, or below each other where they do not fit; `right` are set flush right."""
    widths = _widths(columns, rows, terminal.width)
    if widths is None:
        _print_blocks(terminal, columns, rows)
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for name, width in zip(columns, widths, strict=True):
        table.add_column(Text(name), width=width, justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    terminal.print(table)


def table_width(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> int:
    """How wide these rows are side by side, with nothing folded."""
    return sum(_wanted(columns, rows)) + _BETWEEN * (len(columns) - 1)


def _wanted(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """The width of each column; None where one would have to be too narrow to read."""
    wanted = _wanted(columns, rows)
    widths = [min(width, max(cell_len(name), _NARROWEST)) for name, width in zip(columns, wanted, strict=True)]
    left = room - sum(widths) - _BETWEEN * (len(columns) - 1)
    if left < 0:
        return None
    for place in sorted(range(len(wanted)), key=lambda place: wanted[place]):  # short columns get whole lines first
        more = min(left, wanted[place] - widths[place])
        widths[place] += more
        left -= more
    return widths


def _print_blocks(terminal: Terminal, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    for number, row in enumerate(rows, 1):
        terminal.print(f"[{number}]", style="bold")
        for name, value in zip(columns, row, strict=True):
            line = Text.assemble((f"{name}: ", "dim"), value)
            first, *more = line.wrap(terminal, max(1, terminal.width - 2))
            terminal.print(first)
            for rest in more:
                terminal.print(Text("  ") + rest)
