"""Draws a survey's flow: an SVG picture for notebooks and files, Mermaid text elsewhere.

    boxes      the questions, from top to bottom, with their kind and text; a group has a frame
    right      rules that jump: from a question to a later one or to the end, with the condition beside
    left       skip rules, dashed; and answers that a later text names, dotted

Whatever a survey says is text here: it is escaped, and steers neither page nor terminal. Does not cover: what the rules
mean (survey.flow.route).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from headrace.display import cell_text
from headrace.errors import SurveyError
from headrace.plain_files.replacing import replacing
from headrace.survey.flow.used_names import names_in

if TYPE_CHECKING:
    from headrace.survey.survey import Survey

_BOX_WIDTH, _BOX_HEIGHT, _GAP = 300, 58, 34
_LANE, _LETTER, _LINE = 18, 6.7, 14
_LONGEST_TEXT, _LONGEST_CONDITION = 42, 60
_SKIP = "skip: "
_END = "End"
_ARROW_HEAD = (
    '<defs><marker id="headrace-arrow" markerWidth="8" markerHeight="8" refX="7" refY="3" orient="auto">'
    '<path d="M0,0 L7,3 L0,6 z" fill="#555"/></marker></defs>'
)


class _Way(Enum):
    NEXT = "next"
    JUMP = "jump"
    SKIP = "skip"
    PIPE = "pipe"


class _Arrow(msgspec.Struct, frozen=True):
    """From one box to a later one, by position; the end has the position behind the last question."""

    start: int
    end: int
    way: _Way
    label: str = ""


class FlowDrawing:
    """What `Survey.show_flow` returns. A notebook shows the picture; printed, it is Mermaid text."""

    def __init__(self, survey: Survey) -> None:
        self._names = survey.question_names
        self._texts = [(q.kind, cell_text(q.question_text, _LONGEST_TEXT)) for q in survey.questions]
        self._groups = survey.question_groups
        self._arrows = list(_arrows(survey))  # bounded by what a person writes

    def save(self, filename: str | Path) -> None:
        """Write the picture (.svg, .html) or the text (.mmd, .md, .txt)."""
        path = Path(filename)
        match path.suffix.lower():
            case ".svg":
                held = self._repr_svg_()
            case ".html" | ".htm":
                held = f"<!doctype html><meta charset=utf-8>{self._repr_html_()}"
            case ".md":
                held = f"```mermaid\n{self}```\n"
            case ".mmd" | ".txt":
                held = str(self)
            case _:
                raise SurveyError(f"A drawing cannot be written as {path.name!r}.", fix="Use .svg, .html, .mmd or .md.")
        with replacing(path) as unfinished:
            unfinished.write_text(held, "utf-8")

    def __str__(self) -> str:
        lines = ["flowchart TD"]
        for position, name in enumerate(self._names):
            lines += [f"    subgraph {group}" for group, (first, _) in self._groups.items() if first == position]
            kind, text = self._texts[position]
            lines.append(f'    q{position}["{_mermaid(name)}: {_mermaid(text)}<br/>({kind})"]')
            lines += ["    end" for _, last in self._groups.values() if last == position]
        lines.append(f"    q{len(self._names)}([{_END}])")
        lines += map(_mermaid_arrow, self._arrows)
        return "\n".join(lines) + "\n"

    def __repr__(self) -> str:
        return str(self)

    def _repr_svg_(self) -> str:
        return _Picture(self._names, self._texts, self._groups, self._arrows).svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self._repr_svg_()}</div>'


def _arrows(survey: Survey) -> Iterator[_Arrow]:
    for position, question in enumerate(survey.questions):
        yield _Arrow(position, position + 1, _Way.NEXT)
        skip = survey.skip_rules.get(question.question_name)
        if skip is not None:
            yield _Arrow(position, position + 1, _Way.SKIP, cell_text(skip.source, _LONGEST_CONDITION))
        named = survey.positions_in(name for _, name in names_in(survey, question))
        yield from (_Arrow(earlier, position, _Way.PIPE) for earlier in sorted(named) if earlier < position - 1)
    for rule in survey.rules:
        end = len(survey) if rule.next_question is None else survey.position(rule.next_question)
        condition = cell_text(rule.expression.source, _LONGEST_CONDITION)
        label = f"before: {condition}" if rule.is_before else condition
        yield _Arrow(survey.position(rule.question), end, _Way.JUMP, label)


def _mermaid(text: str) -> str:
    """A text inside a quoted Mermaid label: nothing in it ends the label, is a link, or is HTML."""
    return "".join(letter if letter.isalnum() or letter in " .,?!:_=+*/%-'" else f"#{ord(letter)};" for letter in text)


def _mermaid_arrow(arrow: _Arrow) -> str:
    label = f'|"{"skip where " * (arrow.way is _Way.SKIP)}{_mermaid(arrow.label)}"|' if arrow.label else ""
    line = "-->" if arrow.way in (_Way.NEXT, _Way.JUMP) else "-.->"
    return f"    q{arrow.start} {line}{label} q{arrow.end}"


class _Picture:
    """Boxes in one column; arrows that pass boxes run in lanes beside it, as near to it as others leave room."""

    def __init__(
        self,
        names: list[str],
        texts: list[tuple[str, str]],
        groups: dict[str, tuple[int, int]],
        arrows: list[_Arrow],
    ) -> None:
        self._names, self._texts, self._groups = names, texts, groups
        self._next = [arrow for arrow in arrows if arrow.way is _Way.NEXT]
        right = [arrow for arrow in arrows if arrow.way is _Way.JUMP]
        left = [arrow for arrow in arrows if arrow.way in (_Way.SKIP, _Way.PIPE)]
        self._right, right_lanes = _in_lanes(right)
        self._left, left_lanes = _in_lanes(left)
        skips = max((len(_SKIP + arrow.label) for arrow in left if arrow.label), default=0)
        self._x = 24 + left_lanes * _LANE + skips * _LETTER
        self._labels_x = self._x + _BOX_WIDTH + 16 + right_lanes * _LANE
        self._width = self._labels_x + max((len(arrow.label) for arrow in right), default=0) * _LETTER + 16

    def svg(self) -> str:
        height = self._y(len(self._names)) + 44
        size = f'width="{self._width:.0f}" height="{height}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">',
            _ARROW_HEAD,
            '<rect width="100%" height="100%" fill="#fff"/>',
            *self._frames(),
            *(self._straight(arrow) for arrow in self._next),
            *self._beside(self._right, self._x + _BOX_WIDTH, 1),
            *self._beside(self._left, self._x, -1),
            *self._boxes(),
        ]
        return "".join([*parts, "</svg>"])

    def _y(self, position: int) -> int:
        return 20 + position * (_BOX_HEIGHT + _GAP)

    def _frames(self) -> Iterator[str]:
        for name, (first, last) in self._groups.items():
            y, height = self._y(first) - 14, self._y(last) - self._y(first) + _BOX_HEIGHT + 22
            yield (
                f'<rect x="{self._x - 8:.0f}" y="{y}" width="{_BOX_WIDTH + 16}" height="{height}" rx="6" '
                f'fill="#eef4fb" stroke="#b8cbe0"/><text x="{self._x:.0f}" y="{y + 11}" font-size="10" '
                f'fill="#5a7590">{escape(name)}</text>'
            )

    def _boxes(self) -> Iterator[str]:
        for position, name in enumerate(self._names):
            kind, text = self._texts[position]
            yield self._box(position, _BOX_HEIGHT, "#f8f8f8")
            yield self._text(self._x + 10, self._y(position) + 20, name, "#111", "bold")
            yield self._text(self._x + 10, self._y(position) + 35, text, "#333")
            yield self._text(self._x + 10, self._y(position) + 50, kind, "#888")
        yield self._box(len(self._names), 28, "#e8e8e8")
        yield self._text(self._x + 10, self._y(len(self._names)) + 18, _END, "#333")

    def _box(self, position: int, height: int, fill: str) -> str:
        return (
            f'<rect x="{self._x:.0f}" y="{self._y(position)}" width="{_BOX_WIDTH}" height="{height}" rx="5" '
            f'fill="{fill}" stroke="#999"/>'
        )

    def _straight(self, arrow: _Arrow) -> str:
        x = self._x + _BOX_WIDTH / 2
        return _line(f"M{x:.0f},{self._y(arrow.start) + _BOX_HEIGHT} L{x:.0f},{self._y(arrow.end)}", _Way.NEXT)

    def _beside(self, arrows: list[tuple[_Arrow, int]], edge: float, side: int) -> Iterator[str]:
        """Arrows from box to box outside the column: `side` is 1 on the right and -1 on the left."""
        seen: dict[int, int] = {}
        for arrow, lane in arrows:
            number = seen[arrow.start] = seen.get(arrow.start, -1) + 1
            x, start = edge + side * (12 + lane * _LANE), self._y(arrow.start) + 14 + number * _LINE
            end = self._y(arrow.end) + 12
            yield _line(f"M{edge:.0f},{start} L{x:.0f},{start} L{x:.0f},{end} L{edge:.0f},{end}", arrow.way)
            if arrow.label:
                yield self._label(arrow, start, side)

    def _label(self, arrow: _Arrow, y: int, side: int) -> str:
        if side > 0:
            return self._text(self._labels_x, y + 4, arrow.label, "#226")
        return self._text(8, y - 4, _SKIP + arrow.label, "#622")

    def _text(self, x: float, y: float, text: str, fill: str, weight: str = "normal") -> str:
        return f'<text x="{x:.0f}" y="{y:.0f}" fill="{fill}" font-weight="{weight}">{escape(text)}</text>'


def _line(path: str, way: _Way) -> str:
    dashes = {_Way.SKIP: ' stroke-dasharray="5 3"', _Way.PIPE: ' stroke-dasharray="1 3"'}.get(way, "")
    return f'<path d="{path}" fill="none" stroke="#555"{dashes} marker-end="url(#headrace-arrow)"/>'


def _in_lanes(arrows: Iterable[_Arrow]) -> tuple[list[tuple[_Arrow, int]], int]:
    """Each arrow with its lane, and how many lanes there are: shorter arrows run nearer to the boxes."""
    ends: list[list[tuple[int, int]]] = []
    placed: list[tuple[_Arrow, int]] = []
    for arrow in sorted(arrows, key=lambda arrow: arrow.end - arrow.start):
        free = (n for n, taken in enumerate(ends) if all(arrow.end <= a or b <= arrow.start for a, b in taken))
        lane = next(free, len(ends))
        if lane == len(ends):
            ends.append([])
        ends[lane].append((arrow.start, arrow.end))
        placed.append((arrow, lane))
    return placed, len(ends)
