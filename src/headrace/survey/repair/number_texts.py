"""Numbers in what a model wrote. Covers: a text that is a number, and the one number in a sentence.

What may mean another number is left alone: "5 million", "5/10", "1,5", "5th", "minus 5", and two different numbers.
Does not cover: bounds (survey.questions.number).
"""

from __future__ import annotations

import math
import re

from headrace.survey.repair.json_texts import LONGEST_REPAIRED

_FORMS = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3}){1,100}|\d{1,300})?(?:\.\d{0,300})?(?:[eE][-+]?\d{1,3})?")
_WITH_UNIT = re.compile(r"([^\w+\-.\\]*)([-+]?\.?\d[\d.,]*+(?:[eE][-+]?\d+)?)([^\d]*)")
_LABEL_END = re.compile(r"(?<=[^\W\d])[:=]|=")
_AROUND = "*_\"'`()[]{}<>~≈=.,;:!?"
_IN_UNITS_NEVER = frozenset("+-/^")
_NOT_UNITS = frozenset({
    "k", "m", "b", "t", "bn", "mn", "mm", "tn", "mio", "mrd", "hundred", "hundreds", "thousand", "thousands", "million",
    "millions", "billion", "billions", "trillion", "trillions", "dozen", "dozens", "lakh", "crore", "score",
    "st", "nd", "rd", "th",
})  # fmt: skip
_NOT_BEFORE = frozenset({"not", "minus", "negative", "no", "plus", "times"})


def plain_number(text: str) -> int | float | None:
    """The number that a text is, with commas between thousands or without."""
    if not text.isascii() or not any(map(str.isdecimal, text)) or not _FORMS.fullmatch(text):
        return None
    text = text.replace(",", "")
    number = float(text) if any(letter in ".eE" for letter in text) else int(text)
    return number if math.isfinite(number) else None


def number_in(text: str) -> int | float | None:
    """The number in a sentence, or on the first line by itself; None where there is none, or two that differ.

    A currency sign or a unit may stand beside it. A word with digits in it that is no number makes the sentence
    unreadable.
    """
    text = text.strip()
    if len(text) > LONGEST_REPAIRED:
        return None
    first, _, rest = text.partition("\n")
    if rest and (alone := plain_number(first.strip(_AROUND + " \t\r"))) is not None:
        return alone
    found: set[int | float] = set()
    words = _LABEL_END.sub(" ", text.replace("−", "-")).split()
    for place, word in enumerate(words):
        if any(map(str.isdecimal, word)):
            number = _in_word(word)
            if number is None or _bare(words, place - 1) in _NOT_BEFORE or _bare(words, place + 1) in _NOT_UNITS:
                return None
            found.add(number)
    return found.pop() if len(found) == 1 else None


def _bare(words: list[str], place: int) -> str:
    return words[place].strip(_AROUND).casefold() if 0 <= place < len(words) else ""


def _in_word(word: str) -> int | float | None:
    parts = _WITH_UNIT.fullmatch(word.strip("*_\"'`"))
    if parts is None:
        return None
    unit = parts[3]
    if unit.strip(_AROUND).casefold() in _NOT_UNITS or not _IN_UNITS_NEVER.isdisjoint(unit):
        return None
    return plain_number(parts[2].rstrip(".,"))
