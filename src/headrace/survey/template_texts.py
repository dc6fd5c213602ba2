"""A template's source, read before it is compiled. Covers: its tags, how far each may multiply its data, refusals.

A text may come with a run file from elsewhere, and the template library bounds neither memory nor recursion by itself:

    {{ a|abs|abs|abs... }}     overflows the parser's stack: words per tag and branches are counted
    {% set a = a ~ a %} ...    each name has a weight: how many copies of the data its value may hold
    {% for %} in {% for %}     each turn calls PACE, which ends a text that takes too long and lets Ctrl-C through
    "x" * 1000000000           `*` becomes `**1*--`, which only numbers pass; a short literal is repeated here
    macros, recursive loops    refused: nothing bounds what they build
    indent(2000000000)         survey.template_filters

Does not cover: rendering, and what one rendering may take in all (survey.templates).
"""

from __future__ import annotations

import re

import msgspec

from headrace.errors import HeadraceError

PACE = "_pace"  # a function of one number: the letters that a loop's body writes by itself

_MOST_WORDS = 1_000
_MOST_BRANCHES = 500
_MOST_WEIGHT = 1 << 20
_LONGEST_REPEATED = 10_000
# Filters that give back no more than they got, or a few times that.
_HARMLESS = "abs|capitalize|count|first|float|int|last|length|lower|round|title|trim|upper"
_KEY = r"""\.\w+|\[\s*(?:\d{1,9}|"[^"\\{}]*"|'[^'\\{}]*')\s*\]"""
_NAME_PLAIN = rf"\{{\{{[-+]?\s*[^\W\d]\w*(?:{_KEY}){{0,20}}(?:\s*\|\s*(?:{_HARMLESS})\b){{0,3}}\s*[-+]?\}}\}}"
_PLAIN = re.compile(rf"(?:[^{{]++|\{{(?![{{%#])|{_NAME_PLAIN})*+", re.DOTALL)
_MOST_PLAIN_NAMES = 200
_START = re.compile(r"\{[{%#]")
_WORD = re.compile(
    r"""\s+|(?P<text>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<number>\d\w*(?:\.\d\w*)?)|(?P<name>[^\W\d]\w*)"""
    r"""|(?P<sign>\*\*|[-+]?[%}]\}|.)""",
    re.DOTALL,
)
_RAW_END = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_STATEMENTS = frozenset({
    "if", "elif", "else", "endif", "for", "endfor", "set", "endset", "with", "endwith", "filter", "endfilter",
    "autoescape", "endautoescape", "raw", "break", "continue",
})  # fmt: skip
_NO_DATA = frozenset({
    "and", "or", "not", "in", "is", "if", "else", "elif", "for", "true", "false", "none", "True", "False", "None",
    "set", "with", "filter", "loop", "range", "dict",
})  # fmt: skip
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
# How often a filter may double its text: a quote or a backslash becomes two letters, and some indent.
_DOUBLINGS = {"tojson": 1, "string": 1, "urlencode": 1, "e": 1, "escape": 1, "pprint": 6, "indent": 6}
_WIDEST_INDENT = 16
_TIMES = "**1*--"
_NOT_BEFORE_LITERAL = frozenset({"*", "/", "%", "**", "-", "."})
_NOT_BEHIND_LITERAL = frozenset({"**", "|", ".", "[", "*"})


class UnboundedText(HeadraceError):
    """Rendering this text could take memory or time without bound."""


class Checked(msgspec.Struct, frozen=True):
    """`source` is what to compile; `weight` how many copies of its data a text may hold at once, 0 for names alone.

    `literals` is how many letters of data the text brings along in quotes.
    """

    source: str
    weight: int
    literals: int = 0


class _Word(msgspec.Struct, frozen=True):
    kind: str  # "text", "number", "name", "sign", or "space"
    text: str


def is_plain(source: str) -> bool:
    """Whether the text holds nothing but names to be filled in, perhaps through harmless filters, and not too many."""
    return source.count("{{") <= _MOST_PLAIN_NAMES and _PLAIN.fullmatch(source) is not None


def checked(source: str) -> Checked:
    """The text with its loops paced and its products held to numbers, or UnboundedText."""
    return Checked(source, 0) if is_plain(source) else _TemplateScanner(source).read()


class _TemplateScanner:
    """One pass over a text, tag by tag."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._place = 0
        self._written: list[str] = []
        self._weights: dict[str, int] = {}
        self._total = 0
        self._literals = 0
        self._loops: list[tuple[int, int]] = []  # where each open loop's PACE stands, and the letters before its body
        self._letters = 0
        self._branches = 0

    def read(self) -> Checked:
        while (start := _START.search(self._source, self._place)) is not None:
            self._copy(start.start())
            match start.group():
                case "{#":
                    end = self._source.find("#}", start.end())
                    self._skip(len(self._source) if end < 0 else end + 2)
                case "{{":
                    self._expression()
                case _:
                    self._statement()
        self._copy(len(self._source))
        return Checked("".join(self._written), max(1, self._total), self._literals)

    def _copy(self, end: int) -> None:
        """Copies plain text, which a loop writes once a turn."""
        self._written.append(self._source[self._place : end])
        self._letters += end - self._place
        self._place = end

    def _skip(self, end: int) -> None:
        self._written.append(self._source[self._place : end])
        self._place = end

    def _expression(self) -> None:
        words = self._tag("}}")
        self._weigh(words)
        self._written.append(_joined(words))

    def _statement(self) -> None:
        words = self._tag("%}")
        spoken = [word for word in words if word.kind != "space"]
        statement = next((word.text for word in spoken if word.kind == "name"), "")
        if statement not in _STATEMENTS:
            raise UnboundedText(f"the text uses {{% {statement} %}}")
        if statement == "for" and any(word.text == "recursive" for word in spoken):
            raise UnboundedText("the text uses a recursive loop")
        self._bind(statement, spoken, self._weigh(words))
        if statement == "for":
            self._open_loop(words)
            return
        self._written.append(_joined(words))
        self._count_branches(statement)
        if statement == "endfor" and self._loops:
            self._close_loop()
        if statement == "raw":
            end = _RAW_END.search(self._source, self._place)
            self._copy(end.end() if end is not None else len(self._source))

    def _count_branches(self, statement: str) -> None:
        self._branches += statement == "elif"
        if self._branches > _MOST_BRANCHES:
            raise UnboundedText(f"the text has more than {_MOST_BRANCHES} branches")

    def _open_loop(self, words: list[_Word]) -> None:
        # The mark that trims what follows must stay last: `{% for x in y -%}` has its `-` moved behind the pace.
        ending = words.pop().text
        self._written.append(_joined(words) + "%}")
        self._loops.append((len(self._written), self._letters))
        self._written.append(ending)

    def _close_loop(self) -> None:
        place, before = self._loops.pop()
        letters = self._letters - before
        self._written[place] = f"{{% if {PACE}({letters}) %}}{{% endif {self._written[place]}"

    def _bind(self, statement: str, spoken: list[_Word], weight: int) -> None:
        """Gives the names that this tag assigns the weight of the whole tag."""
        if statement in ("set", "with"):
            before = spoken[: _position(spoken, "=")] if statement == "set" else spoken
            self._weights |= {word.text: weight for word in before if word.kind == "name"}
        elif statement == "for":
            targets = spoken[: _position(spoken, "in")]
            self._weights |= {word.text: weight for word in targets if word.kind == "name"}

    def _weigh(self, words: list[_Word]) -> int:
        """How many copies of the data the values in this tag may hold: names added up, doubled by each repr of them."""
        names, depth, deepest, doublings, before = 0, 0, 0, 0, ""
        for word in words:
            if word.kind == "space":
                continue
            if word.kind == "name" and before not in (".", "|") and word.text not in _NO_DATA:
                names += self._weights.get(word.text, 1)
            self._literals += len(word.text) if word.kind == "text" else 0
            doublings += 0 if word.text == "indent" and before == "|" else _DOUBLINGS.get(word.text.strip("'\""), 0)
            depth += (word.text in _OPENING) - (word.text in _CLOSING)
            deepest, before = max(deepest, depth), word.text
        weight = max(1, names) << min(60, doublings + deepest)
        if weight > _MOST_WEIGHT:
            raise UnboundedText("the text multiplies what it is given too often")
        self._total += weight
        return weight

    def _tag(self, ending: str) -> list[_Word]:
        """The words of the tag that begins here, its marks included."""
        words, depth, place = [_Word("mark", self._source[self._place : self._place + 2])], 0, self._place + 2
        while place < len(self._source):
            match = _WORD.match(self._source, place)
            assert match is not None  # the last alternative matches anything
            text, kind = match.group(), match.lastgroup or "space"
            if kind == "sign" and len(text) > 1 and text != "**" and (depth or not text.endswith(ending)):
                text = text[0]  # `}}` that closes two dicts, or `%}` inside an expression
            words.append(_Word(kind, text))
            place += len(text)
            if kind == "sign" and len(text) > 1 and text != "**":
                break
            depth += (text in _OPENING) - (text in _CLOSING)
            if len(words) > _MOST_WORDS:
                raise UnboundedText(f"one tag of the text has more than {_MOST_WORDS // 2} words")
        self._place = place
        _check_indent([word for word in words if word.kind != "space"])
        return _with_products_of_numbers(words)


def _check_indent(spoken: list[_Word]) -> None:
    """`tojson(indent=...)` takes a number, and a small one: lists in lists are indented again and again."""
    for place, word in enumerate(spoken):
        if word.text == "tojson" and spoken[place + 1 : place + 2] == [_Word("sign", "(")]:
            given = spoken[place + 2 : place + 2 + _position(spoken[place + 2 :], ")")]
            names = {each.text for each in given if each.kind == "name"} - {"indent", "true", "false", "none"}
            numbers = [each.text for each in given if each.kind == "number"]
            if names or not all(number.isdecimal() and int(number[:9]) <= _WIDEST_INDENT for number in numbers):
                raise UnboundedText(f"tojson takes an indent of at most {_WIDEST_INDENT}, written as a number")


def _position(words: list[_Word], text: str) -> int:
    return next((place for place, word in enumerate(words) if word.text == text), len(words))


def _joined(words: list[_Word]) -> str:
    return "".join(word.text for word in words)


def _with_products_of_numbers(words: list[_Word]) -> list[_Word]:
    """The words with each `*` made one that only numbers pass, and a short literal repeated on the spot."""
    if not any(word.text == "*" for word in words):
        return words
    made = list(words)
    places = [place for place, word in enumerate(words) if word.kind != "space"]
    spoken = [words[place] for place in places]
    for number, word in enumerate(spoken):
        if word.text != "*" or spoken[number - 1].text in ("(", ","):  # behind those it unpacks a list
            continue
        made[places[number]] = _Word("sign", _TIMES)
        if (literal := _repeated(spoken, number)) is not None:
            made[places[number - 1] : places[number + 1] + 1] = [literal] + [_Word("space", "")] * (
                places[number + 1] - places[number - 1]
            )
    return made


def _repeated(spoken: list[_Word], sign: int) -> _Word | None:
    """`"=" * 20` or `20 * "="` as one literal, where those three words stand for themselves."""
    if sign + 1 >= len(spoken):
        return None
    left, right = spoken[sign - 1], spoken[sign + 1]
    given = {left.kind: left.text, right.kind: right.text}
    before, behind = spoken[sign - 2].text, spoken[sign + 2].text if sign + 2 < len(spoken) else ""
    if given.keys() != {"text", "number"} or before in _NOT_BEFORE_LITERAL or behind in _NOT_BEHIND_LITERAL:
        return None
    quoted, number = given["text"], given["number"]
    if not number.isdecimal() or len(number) > 5 or int(number) * len(quoted) > _LONGEST_REPEATED:
        return None
    return _Word("text", quoted[0] + quoted[1:-1] * int(number) + quoted[0])
