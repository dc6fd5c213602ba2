"""Finds the answer and its comment in a model's reply, then has the question accept the answer.

Small models wrap what they were asked for in thoughts, fences and courtesies; `read_reply` looks through these.
Does not cover: what each kind accepts (survey.questions), or asking again (interviews.interview).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from headrace.errors import HeadraceError
from headrace.survey.repair.bounded_json import TooManyValues, check_values, decode_bounded

_THOUGHTS, _THOUGHTS_END = "<think>", "</think>"
_FENCED_JSON = re.compile(r"```(?:json|JSON)\s*(\{.*\})\s*```", re.DOTALL)
_FENCED_TEXT = re.compile(r"```[\w+-]*+[ \t]*+\n(.*?)```(.*)", re.DOTALL)
_COMMENT_MARK = re.compile(
    r"^[ \t*_]*(?:comment|correction|explanation|reason)[*_]*[ \t]*:[*_]*[ \t]*", re.IGNORECASE | re.MULTILINE
)
_BEGUN_ANSWER = re.compile(r'(?:```(?:json)?\s*)?\{\s*"answer"\s*:\s*')
_BEGUN_COMMENT = re.compile(r'\s*,\s*"comment"\s*:\s*"(.*)', re.DOTALL)
_ENVELOPE = frozenset({"answer", "comment"})
_MOST_BEGINNINGS = 20


class NoAnswer(HeadraceError):
    """The reply holds nothing that could be an answer."""


def read_reply(text: str) -> tuple[Any, str | None]:
    """A JSON object `{"answer": ..., "comment": ...}`, or else the text itself; NoAnswer for nothing at all.

    Around such an object there may be words, and a fence around any JSON object. All other text stays as it is: it may
    be the answer, with its fences and braces.
    """
    text = without_thoughts(text)
    given, comment = (text, None) if "{" not in text else _read_object(text)
    if given is None or given == "":
        raise NoAnswer("the model gave no answer")
    return given, comment


def without_thoughts(text: str) -> str:
    """The reply without the thoughts that some models write first."""
    text = text.strip()
    if not text.startswith(_THOUGHTS):
        return text
    _, end, answer = text.partition(_THOUGHTS_END)
    return answer.strip() if end else text


def unfenced(text: str) -> str:
    """The text without the code fence that models like to put around JSON."""
    text = without_thoughts(text)
    is_fenced = text.startswith("```") and text.endswith("```") and "\n" in text
    return text[text.index("\n") : -3].strip() if is_fenced else text


def readings(text: str, *, spans_lines: bool) -> Iterator[tuple[str, str | None]]:
    """What a reply in plain text may mean, likeliest first: an answer, and the comment behind it.

    A comment stands behind the word "Comment:", or on the lines below the answer. Where an answer itself may span
    lines, the whole text comes first.
    """
    fence = _FENCED_TEXT.match(text)
    if fence is not None:
        yield fence[1].strip(), fence[2].strip() or None
    marked = _COMMENT_MARK.search(text)
    if marked is not None and (before := text[: marked.start()].strip()):
        yield before, text[marked.end() :].strip() or None
    splits = [_split(text, "\n"), _split(text, "\n\n")]
    if spans_lines:
        splits = [(text, None), *reversed(splits)]
    yield from dict.fromkeys([*splits, (text, None)])


def read_cut(text: str, *, spans_lines: bool) -> tuple[Any, str] | None:
    """The answer and the beginning of its comment, where a reply was cut off inside the comment; else None."""
    text = without_thoughts(text)
    if (begun := _BEGUN_ANSWER.match(text)) is None or not _is_bounded(text):
        answer, comment = _split(text, "\n")
        return None if comment is None or spans_lines or text[0] in "{[`" else (answer, comment)
    import json  # only replies that are cut off need it

    try:
        answer, end = json.JSONDecoder().raw_decode(text, begun.end())
    except (ValueError, RecursionError):
        return None
    comment = _BEGUN_COMMENT.match(text, end)
    return None if comment is None else (answer, comment[1])


def _split(text: str, mark: str) -> tuple[str, str | None]:
    answer, _, comment = text.partition(mark)
    return answer.strip(), comment.strip() or None


def _read_object(text: str) -> tuple[Any, str | None]:
    if not _is_bounded(text):
        return text, None
    fenced = _FENCED_JSON.fullmatch(text)
    if fenced is not None and _whole_object(fenced[1]) is not None:
        text = fenced[1]
    found = _whole_object(text) if text[0] == "{" else None
    if found is None or "answer" not in found:
        found = _object_within(text) if '"answer"' in text and found is None else None
    if found is None:
        return text, None
    comment = found.get("comment")
    return found["answer"], comment if comment is None else str(comment)


def _is_bounded(text: str) -> bool:
    """Whether the JSON in a text may be decoded; one that would take too much memory stays a text."""
    try:
        check_values(text)
    except TooManyValues:
        return False
    return True


def _whole_object(text: str) -> dict[str, Any] | None:
    try:
        found = decode_bounded(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _object_within(text: str) -> dict[str, Any] | None:
    """The first object in the text that holds an answer, and at most a comment beside it."""
    import json  # only replies that are not quite what was asked for need it

    decoder, at = json.JSONDecoder(), -1
    for _ in range(_MOST_BEGINNINGS):
        at = text.find("{", at + 1)
        if at < 0:
            return None
        try:
            found, _ = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict) and "answer" in found and found.keys() <= _ENVELOPE:
            return cast("dict[str, Any]", found)
    return None
