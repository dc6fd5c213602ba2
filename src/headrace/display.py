"""Shows a few rows to people, as HTML for notebooks. Covers: cutting and escaping.

`visible` is for every text on its way to a terminal that a model, a service or a file may have written: error texts
(errors), tables, progress, CSV at a terminal. What would steer the terminal is shown as an escape.

Does not cover: which rows (the classes that show themselves: a survey, lists, a job, results), or tables of text
(tables).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

SHOWN_ROWS = 10
_MOST_COLUMNS = 30
_LONGEST_HTML = 200
# Control characters but for tab and line end, marks that reverse the direction of text, tags, half characters.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape: `\\x1b[31m`."""
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def cell_text(value: Any, longest: int) -> str:
    """A value on one line, cut to `longest`."""
    return _cut(" ".join(_shown(value)[: 4 * longest].split()), longest)


def cell_lines(value: Any, longest: int) -> str:
    """A value with the line breaks of its text, cut to `longest`."""
    text = _shown(value)[: 4 * longest]
    lines = (line.expandtabs(4).rstrip() for line in text.replace("\r\n", "\n").split("\n"))
    return _cut("\n".join(lines).strip("\n"), longest)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str) -> str:
    import html  # only notebooks need it

    if not columns:
        return html_note(caption)
    shown = columns[:_MOST_COLUMNS]
    head = "".join(f"<th>{html.escape(name)}</th>" for name in shown)
    body = "".join(
        f"<tr>{''.join(f'<td>{_html_cell(value)}</td>' for value in row[:_MOST_COLUMNS])}</tr>" for row in rows
    )
    note = f"; {len(shown)} of {len(columns)} columns" if len(columns) > len(shown) else ""
    # Notebooks would set what stands between two dollar signs as a formula.
    table = '<table class="tex2jax_ignore mathjax_ignore">'
    return f"{table}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{html_note(caption + note)}"


def counted(count: int, what: str) -> str:
    """`1 interview`, `2,000 interviews`."""
    return f"{count:,} {what}{'s' * (count != 1)}"


def first_of(shown: int, total: int, what: str) -> str:
    """A caption: `the first 10 of 2,000 agents`."""
    return f"the first {shown:,} of {counted(total, what)}" if shown < total else counted(total, what)


def html_note(text: str) -> str:
    import html

    return f"<p>{html.escape(text)}</p>"


def _shown(value: Any) -> str:
    import json  # only who looks needs it

    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else str(value)


def _cut(text: str, longest: int) -> str:
    text = visible(text)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _html_cell(value: Any) -> str:
    import html

    return "" if value is None else html.escape(cell_lines(value, _LONGEST_HTML)).replace("\n", "<br>")
