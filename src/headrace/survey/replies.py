"""Reading what a model said: the given answer and its comment, then the answer its question accepts.

Does not cover: what each kind accepts (survey.questions), or asking again (execute.interview).
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from headrace.errors import HeadraceError


class NoAnswer(HeadraceError):
    """The reply holds nothing that could be an answer."""


def read_reply(text: str) -> tuple[Any, str | None]:
    """A JSON object `{"answer": ..., "comment": ...}`, or else the text itself; NoAnswer for nothing at all."""
    text = unfenced(text)
    given, comment = (text, None) if text[:1] != "{" else _read_object(text)
    if given is None or given == "":
        raise NoAnswer("the model gave no answer")
    return given, comment


def unfenced(text: str) -> str:
    """The text without the code fence that models like to put around JSON."""
    text = text.strip()
    if not (text.startswith("```") and text.endswith("```") and "\n" in text):
        return text
    return text[text.index("\n") : -3].strip()


def _read_object(text: str) -> tuple[Any, str | None]:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text, None
    if not isinstance(found, dict) or "answer" not in found:
        return text, None
    held = cast("dict[str, Any]", found)
    comment = held.get("comment")
    return held["answer"], comment if comment is None else str(comment)
