"""Shows rows to people: as text that fits the terminal, and as Markdown, HTML and LaTeX.

Text on a terminal is as wide as the terminal: a table, or a block of lines for each row where columns do not fit.
Elsewhere (a pipe, a file) each row is one line of any width, its long texts cut, unless COLUMNS says how wide it may
be. Does not cover: which rows and columns (overview), or laying out a table (tables).
"""

from __future__ import annotations

import io
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO

import msgspec
from msgspec.structs import replace

from headrace.display import cell_lines, cell_text, counted, html_table, visible
from headrace.errors import OptionError, nearest
from headrace.progress.notebook import is_notebook
from headrace.results.export.listing import bare_names
from headrace.results.export.markup import markdown_line

if TYPE_CHECKING:
    from rich.console import Console

TABLE_ROWS, MARKUP_ROWS = 20, 500
FORMATS = ("rich", "markdown", "html", "latex")
_LONGEST_FOLDED, _LONGEST_AT_A_GLANCE, _LONGEST_ON_A_LINE, _LONGEST_IN_MARKUP = 2_000, 150, 100, 500
_LATEX = str.maketrans({sign: "\\" + sign for sign in "&%$#_{}"}) | str.maketrans(
    {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """Rows to look at. `total` is how many there are in all, None where counting would read all of them.

    `is_overview` says that nobody chose the columns: long texts are then cut, and stand on one line.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    total: int | None
    notes: tuple[str, ...] = ()
    is_overview: bool = False

    def footer(self) -> list[str]:
        """What is not shown: `and 19,980 more`; and that there is nothing to show."""
        if self.total is None:
            return ["and more", *self.notes]
        left = self.total - len(self.rows)
        return [*(["no rows"] if not self.total else []), *([f"and {left:,} more"] if left > 0 else []), *self.notes]


def rows_for(format: str | None, max_rows: int | None) -> int:
    """How many rows a format shows where the user does not say; refuses a format that there is not."""
    if format is not None and format not in FORMATS:
        raise OptionError(f"There is no format {format!r}.", fix=f"Use one of {', '.join(FORMATS)}.")
    if max_rows is not None:
        return max(0, max_rows)
    return TABLE_ROWS if format in (None, "rich") else MARKUP_ROWS


def rounded(glance: Glance) -> Glance:
    """The rows with numbers of about six digits, and all of those before the point: exports have the others."""
    return replace(glance, rows=[tuple(map(_rounded, row)) for row in glance.rows])


def _rounded(value: Any) -> Any:
    if not isinstance(value, float) or not value or not math.isfinite(value):
        return value
    return round(value, max(1, 5 - math.floor(math.log10(abs(value)))))


def labelled(glance: Glance, labels: Mapping[str, str]) -> Glance:
    """The rows under other headings; a label may be given for a column's full or bare name."""
    named = dict(zip(bare_names(glance.columns), glance.columns, strict=True))
    wanted = {named.get(name, name): label for name, label in labels.items()}
    for name in wanted:
        if name not in glance.columns:
            raise OptionError(f"pretty_labels has {name!r}, which is not shown.", fix=nearest(name, glance.columns))
    return replace(glance, columns=[wanted.get(name, name) for name in glance.columns])


def print_glance(glance: Glance, format: str | None) -> None:
    """Print on standard output; HTML in a notebook is shown there."""
    if format == "html" and is_notebook():
        shown = {"text/html": in_format(glance, format), "text/plain": as_text(glance)}
        import_module("IPython.display").display(shown, raw=True)
        return
    if format in (None, "rich"):
        if _is_terminal():
            _draw(_console(sys.stdout), glance)  # with bold headings
            return
        sys.stdout.write(as_text(glance) + "\n")
    else:
        sys.stdout.write(in_format(glance, format) + "\n")


def in_format(glance: Glance, format: str | None) -> str:
    match format:
        case "markdown":
            return _markdown(glance)
        case "html":
            caption = "; ".join(glance.footer()) or counted(len(glance.rows), "row")
            return html_table(glance.columns, glance.rows, caption)
        case "latex":
            return _latex(glance)
        case _:
            return as_text(glance)


def as_text(glance: Glance) -> str:
    """The text for standard output as it is at this moment."""
    buffer = _Buffer()
    _draw(_console(buffer), glance)
    return "\n".join(map(str.rstrip, buffer.getvalue().splitlines()))


def _console(file: TextIO) -> Console:
    from rich.console import Console

    # Left to itself, in a notebook rich displays below the cell what is meant for `file`.
    return Console(file=file, width=_room() or 80, force_jupyter=False, highlight=False, markup=False, emoji=False)


def _draw(console: Console, glance: Glance) -> None:
    from headrace.tables import fits_side_by_side, print_rows, table_width

    is_bounded = _room() is not None
    cut = glance.is_overview or not is_bounded
    longest = _LONGEST_AT_A_GLANCE if glance.is_overview else _LONGEST_FOLDED
    longest = longest if is_bounded else _LONGEST_ON_A_LINE
    columns = [cell_text(name, longest) for name in glance.columns]
    rows = [[_text(value, longest, console.encoding, glance) for value in row] for row in glance.rows]
    if not columns:
        console.print("no columns")
    elif not is_bounded:
        console.width = max(console.width, table_width(columns, rows))
    elif not fits_side_by_side(columns, rows, console.width, cut=cut):
        short = [cell_text(name, longest) for name in bare_names(glance.columns)]
        columns = short if fits_side_by_side(short, rows, console.width, cut=cut) else columns
    if columns:
        print_rows(console, columns, rows, cut=cut)
    for line in glance.footer():
        console.print(visible(line), soft_wrap=True)


class _Buffer(io.StringIO):
    """A text with the encoding of standard output, so that only letters it has are drawn."""

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return getattr(sys.stdout, "encoding", None) or "utf-8"


def _room() -> int | None:
    """How wide standard output is; None where it is no terminal and nothing says how wide."""
    if _is_terminal() or os.environ.get("COLUMNS", "").isdigit():
        return max(20, shutil.get_terminal_size().columns)
    return None


def _is_terminal() -> bool:
    try:
        return sys.stdout.isatty()
    except (AttributeError, ValueError):  # replaced by something that only writes, or closed
        return False


def _text(value: Any, longest: int, encoding: str, glance: Glance) -> str:
    """The text of a cell. In columns that the user chose it keeps its line breaks, and is then shown whole."""
    if not glance.is_overview and isinstance(value, str) and "\n" in value.strip("\n"):
        text = cell_lines(value, _LONGEST_FOLDED)
    else:
        text = "" if value is None else cell_text(value, longest)
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _markdown(glance: Glance) -> str:
    def line(cells: Sequence[Any]) -> str:
        texts = ("" if cell is None else cell_text(cell, _LONGEST_IN_MARKUP) for cell in cells)
        return markdown_line(texts)

    lines = [line(glance.columns), line(["---"] * len(glance.columns)), *map(line, glance.rows)]
    footer = glance.footer()
    return "\n".join([*lines, "", *footer] if footer else lines)


def _latex(glance: Glance) -> str:
    def line(cells: Sequence[Any]) -> str:
        texts = ("" if cell is None else cell_text(cell, _LONGEST_IN_MARKUP) for cell in cells)
        return f"{' & '.join(text.translate(_LATEX) for text in texts)} \\\\"

    head = [f"\\begin{{tabular}}{{{'l' * len(glance.columns)}}}", "\\hline", line(glance.columns), "\\hline"]
    footer = [f"% {text}" for text in glance.footer()]
    return "\n".join([*head, *map(line, glance.rows), "\\hline", "\\end{tabular}", *footer])
