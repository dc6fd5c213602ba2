"""Lists that a model wrote in lines: `- red`, or `1. red`. Does not cover: lists in JSON (survey.repair.json_texts)."""

from __future__ import annotations

import re

from headrace.survey.repair.json_texts import LONGEST_REPAIRED, Found

_ITEM = re.compile(r"(?:[-*•–]|\(?\d{1,3}[.)])[ \t]+(\S.*)")
_QUOTED = re.compile(r"(\"|')([^\"']*)\1")


def lines_in(text: str) -> Found | None:
    """The items of a list with one marked line each, as `- red` or `1. red`; None where the text is not such a list.

    One line that ends with a colon may come before, and a paragraph behind, which is the comment.
    """
    if len(text) > LONGEST_REPAIRED:
        return None
    lines = text.strip().splitlines()
    if len(lines) > 1 and lines[0].rstrip().endswith(":"):
        lines = lines[1:]
    items: list[str] = []
    for place, line in enumerate(lines):
        item = _ITEM.fullmatch(line.rstrip())
        if item is not None:
            items.append(_unquoted(item[1]))
        elif line.strip():
            # Words directly below an item may belong to it.
            is_paragraph = bool(items) and not lines[place - 1].strip()
            comment = "\n".join(lines[place:])
            is_end = is_paragraph and not any(_ITEM.fullmatch(later.strip()) for later in lines[place:])
            return Found(items, comment) if is_end else None
    return Found(items) if items else None


def _unquoted(text: str) -> str:
    quoted = _QUOTED.fullmatch(text.rstrip(","))
    return quoted[2] if quoted is not None else text
