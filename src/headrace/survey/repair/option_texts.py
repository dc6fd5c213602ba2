"""Finds the options that a model meant. Covers: one option, and several in a row, in a text or a JSON value.

An option's own text wins over its number. What can be read in two ways is not repaired: two options where one is asked
for, an option behind a "not". Does not cover: how many may be chosen (survey.questions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar

from headrace.survey.repair.json_texts import json_in

_Key = TypeVar("_Key", str, int)

_LONGEST_SENTENCE = 5_000
_MOST_LETTERS = 100_000  # of all options together, in a sentence
_MOST_SHORTENED = 1_000  # options, each of which is compared with each item
_AROUND = " \t\r\n\"'`*_.!“”‘’"
_MARKER = re.compile(r"(?:[-*•–]\s+|\(?\d{1,6}\s*[.):\]-]\s*)(?=\S)")
_LABEL = re.compile(
    r"(?:(?:sure|okay|ok|well)[,.!:]?\s+)?(?:(?:i|my|the|final|selected|chosen|best|correct)\s+){0,3}"
    r"(?:answer|choice|choose|option|selection|select|code|number|response|pick)\s*"
    r"(?:is|are|would\s+be)?\s*[:=#]?\s*(?:option|number|code)?\s*#?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\(?#?(\d{1,6})[.):]?")
_STARTS_WITH_NUMBER = re.compile(r"[-+(#]?\d")
_LEADING_NUMBER = re.compile(r"[(#]?([-+]?\d{1,18})(?![\d.,]*\d)")
_SHORTENED = re.compile(r"\s*[(:,–—]|\s+-")
_ENDS_FIRST = re.compile(r"\s*(?:[,;:.!?–—)]|-\s|$)")
_BETWEEN = re.compile(r"[\s,;>|&/→\"'`*\[\]().:•–-]|(?:and|then)\b", re.IGNORECASE)
_NUMBER_MARK = re.compile(r"\(?\d{1,6}\s*[.):\]-]\s*")
_CODE = re.compile(r"\d{1,6}(?!\w)")
_WORDS = re.compile(r"[^\W_][\w'’-]*")
_NEGATIONS = frozenset(
    {
        "not",
        "no",
        "never",
        "neither",
        "nor",
        "none",
        "cannot",
        "except",
        "without",
        "instead",
        "rather",
        "less",
        "least",
    }
)
# These stand in any sentence: as an option they count only at its beginning or end.
_SMALL_WORDS = _NEGATIONS | frozenset(
    {"a", "all", "am", "an", "and", "any", "as", "at", "be", "both", "by", "can", "do", "for", "he", "i", "if", "in",
     "is", "it", "may", "me", "more", "most", "much", "my", "of", "ok", "on", "one", "or", "other", "she", "so", "some",
     "that", "the", "they", "this", "to", "us", "very", "we", "well", "yes", "you"}
)  # fmt: skip


@dataclass(frozen=True)
class KnownOptions:
    """What there is to choose from; `first` is the number of the first, None where options begin with numbers.

    No two look alike. They are looked up in tables: an answer may name each of ten thousand.
    """

    values: tuple[Any, ...]
    first: int | None = 1

    @cached_property
    def by_text(self) -> dict[str, int]:
        """Positions by the option as it is shown."""
        return {as_shown(value): position for position, value in reversed(list(enumerate(self.values)))}

    @cached_property
    def by_loose_text(self) -> dict[str, int | None]:
        """Positions by the option but for case and blanks; None where that fits two."""
        return _unless_twice((loosely(shown), position) for shown, position in self.by_text.items())

    @cached_property
    def by_own_number(self) -> dict[int, int | None]:
        """Positions by the number that an option begins with; None where two begin with it."""
        numbers = ((_LEADING_NUMBER.match(shown), position) for shown, position in self.by_text.items())
        return _unless_twice((int(found[1]), position) for found, position in numbers if found is not None)


def _unless_twice(places: Iterable[tuple[_Key, int]]) -> dict[_Key, int | None]:
    """A table without the keys that have two positions: None stands for these."""
    table: dict[_Key, int | None] = {}
    for key, position in places:
        table[key] = None if key in table else position
    return table


def as_shown(option: Any) -> str:
    """An option as the model reads it; an answer could not choose between two that look alike."""
    return str(option).strip()


def first_number(values: Sequence[Any], wanted: int) -> int | None:
    """From where options are numbered: not at all where one of them begins with a number itself."""
    return None if any(_STARTS_WITH_NUMBER.match(as_shown(value)) for value in values) else wanted


def position_of(given: Any, options: KnownOptions) -> int | None:
    """The position of the option that is given: the value itself, its text, or its number."""
    if (position := options.by_text.get(as_shown(given))) is not None:
        return position
    if isinstance(given, str) and given.lstrip().startswith("[") and (found := json_in(given, list)) is not None:
        given = found.value
    if isinstance(given, list) and len(given) == 1:  # pyright: ignore[reportUnknownArgumentType]
        given = given[0]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    return _position_of_text(as_shown(given), options)


def position_in(text: str, options: KnownOptions) -> int | None:
    """The position of the one option that a sentence names; None where it names several, or says what it is not."""
    known = _pattern(options.values)
    if known is None or len(text) > _LONGEST_SENTENCE or text.lstrip()[:1] in ("[", "{"):  # no sentence
        return None
    spoken = _spaced(text)
    found = _named(spoken, known)
    if len({position for _, _, position in found}) != 1:
        return None
    start, end, position = found[0]
    if start == 0 and _ENDS_FIRST.match(spoken, end):
        return position
    return position if _is_meant(spoken, found, options) else None


def positions_in_row(text: str, options: KnownOptions) -> list[int] | None:
    """The positions of options with nothing but commas and the like between them; None where anything else is there."""
    known = _pattern(options.values)
    if known is None or len(text) > _LONGEST_SENTENCE:
        return None
    found: list[int] = []
    spoken, at = _spaced(text.replace("\n", ", ")), 0
    while at < len(spoken):
        if (option := known.pattern.match(spoken, at)) is not None:
            found.append(known.positions[option[0]])
            at = option.end()
        elif (marker := _NUMBER_MARK.match(spoken, at)) is not None and known.pattern.match(spoken, marker.end()):
            at = marker.end()  # the option's text wins
        elif (number := _CODE.match(spoken, at)) is not None:
            position = _numbered(int(number[0]), options)
            if position is None:
                return None
            found.append(position)
            at = number.end()
        elif (between := _BETWEEN.match(spoken, at)) is not None:
            at = between.end()
        else:
            return None
    return found or None


def positions_named(text: str, options: KnownOptions) -> list[int] | None:
    """The positions of all options that a sentence names, each once; None where it says that some are not meant."""
    known = _pattern(options.values)
    if known is None or len(text) > _LONGEST_SENTENCE or text.lstrip()[:1] in ("[", "{"):
        return None
    spoken = _spaced(text)
    found = _named(spoken, known)
    if not found or not _is_meant(spoken, found, options):
        return None
    return list(dict.fromkeys(position for _, _, position in found))


def loosely(text: str) -> str:
    """A text but for case, blanks, and the quotes and stars around it."""
    return " ".join(text.strip(_AROUND).split()).casefold()


def _position_of_text(text: str, options: KnownOptions) -> int | None:
    if (position := options.by_text.get(text)) is not None:
        return position
    loose = options.by_loose_text
    for written in _unlabelled(text):
        wanted = loosely(written)
        if wanted and (position := loose.get(wanted)) is not None:
            return position
        if (number := _NUMBER.fullmatch(written.strip(_AROUND))) is not None:
            return _numbered(int(number[1]), options)
        if (unmarked := _MARKER.sub("", written, count=1)) != written:
            return loose.get(loosely(unmarked))
    wanted = loosely(text)
    if not wanted or len(loose) > _MOST_SHORTENED:
        return None
    longer = [option for option in loose if option.startswith(wanted) and _SHORTENED.match(option, len(wanted))]
    return loose[longer[0]] if len(longer) == 1 else None


def _unlabelled(text: str) -> list[str]:
    """The text, and what follows "Answer:" or "My choice is" in it."""
    label = _LABEL.match(text.strip(_AROUND))
    if label is None or not label[0]:
        return [text]
    return [text, text.strip(_AROUND)[label.end() :]]


def _numbered(number: int, options: KnownOptions) -> int | None:
    if options.first is None:
        return options.by_own_number.get(number)
    position = number - options.first
    return position if 0 <= position < len(options.values) else None


class _Known(NamedTuple):
    pattern: re.Pattern[str]
    positions: dict[str, int]


def _pattern(values: tuple[Any, ...]) -> _Known | None:
    return _compiled(tuple(_spaced(as_shown(value)) for value in values))


@lru_cache(maxsize=64)
def _compiled(shown: tuple[str, ...]) -> _Known | None:
    """All options as one pattern, the longest first; None where two are alike, or there are too many."""
    positions = {text: position for position, text in enumerate(shown)}
    if len(positions) < len(shown) or "" in positions or sum(map(len, shown)) > _MOST_LETTERS:
        return None
    longest_first = sorted(positions, key=len, reverse=True)
    any_option = "|".join(map(re.escape, longest_first))
    # Neither a part of a word nor of a number: not 7 in -7, nor 7 in 7.5.
    return _Known(re.compile(rf"(?<![\w+-])(?<!\d[.,])(?:{any_option})(?!\w|-\w|[.,]\d|%)"), positions)


def _spaced(text: str) -> str:
    """In one case and with single blanks, quotes and stars left out: as options are looked for in sentences."""
    return " ".join(re.sub(r"[*_`\"“”]", "", text).split()).casefold()


def _named(spoken: str, known: _Known) -> list[tuple[int, int, int]]:
    return [(found.start(), found.end(), known.positions[found[0]]) for found in known.pattern.finditer(spoken)]


def _is_meant(spoken: str, found: list[tuple[int, int, int]], options: KnownOptions) -> bool:
    """Whether a sentence says yes to what it names: no "not", no further number, no word that any sentence has."""
    kept: list[str] = []
    at = 0
    for start, end, _ in found:
        kept.append(spoken[at:start])
        at = end
    kept.append(spoken[at:])
    rest = " ".join(kept)
    words = _WORDS.findall(rest)
    if any(word in _NEGATIONS or word.endswith(("n't", "n’t")) for word in words):
        return False
    if options.first is None and any(character.isdigit() for character in rest):
        return False
    return not any(_is_common(spoken[start:end]) and spoken[end:].strip(_AROUND + "?,;:)") for start, end, _ in found)


def _is_common(option: str) -> bool:
    words = _WORDS.findall(option)
    return len(option) < 2 or (bool(words) and all(word in _SMALL_WORDS for word in words))
