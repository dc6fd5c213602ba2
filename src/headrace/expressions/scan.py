"""Makes plain Python text of an expression's source without moving a single column.

Covers: `{{ name }}`, `'{{ name }}'` (the value as text), line ends, habits of other languages (`&&`, `=`), and sizes
that are refused before Python's parser sees them. Does not cover: the grammar (`syntax`).
"""

from __future__ import annotations

import re

from headrace.errors import ExpressionError

LONGEST_SOURCE = 10_000
DEEPEST_NESTING = 50
# Python's parser takes C stack for each link of `x+x+x...` and `----x`, and dies of it where there is little.
# So: more links than a readable tree could have, but few enough to survive in 1 MiB.
_LONGEST_CHAIN = 500
_METHOD_LINKS = 5  # what a method of a call takes of that stack

_BRACED_NAME = r"""
    \{\{ \s* [^\W\d]\w*
    (?: \.[^\W\d]\w* | \[ \s* (?: -?\d{1,9} | "[^"\\{}\r\n]*" | '[^'\\{}\r\n]*' ) \s* \] )* \s* \}\}
"""

_TOKEN = re.compile(
    rf"""
      (?P<quotes> '{{3}} | "{{3}} )
    | (?P<quoted> ' {_BRACED_NAME} ' | " {_BRACED_NAME} " )
    | (?P<text> '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" )
    | (?P<name> {_BRACED_NAME} )
    | (?P<habit> =(?!=) | !(?!=) | \{{\{{ | && | \|\| | \# )
    | (?P<method> \) \s* (?=\.) )
    | (?P<trailer> [)}}] \s* [(\[{{.] | \] \s* [({{] )
    | (?P<link> \] \s* (?=[\[.]) )
    | (?P<opening> [(\[{{] )
    | (?P<closing> [)\]}}] )
    | (?P<operator> \bnot\b | << | >> | [-+*/%@^&|~.] )
    | (?P<separator> , | \b(?:and|or)\b | [=!<>:]= | [<>] )
    | (?P<space> \s )
    """,
    re.VERBOSE | re.DOTALL,
)

_SPACE = re.compile(r"\s")

_HABITS = {
    "{{": (
        "{{ }} around something that is not one dotted name",
        'Write {{ mood.answer }}, {{ mood.answer[0] }} or {{ scenario["Review Text"] }}, or leave the braces out.',
    ),
    "&&": ("&& is not an operator here", "Write 'and'."),
    "||": ("|| is not an operator here", "Write 'or'."),
    "!": ("! is not an operator here", "Write 'not', or != to compare."),
    "=": ("A single = does not compare", "Write == to compare."),
    "#": ("Comments are not part of an expression", "Remove the # and what follows."),
    "'''": ("Triple quotes are not part of an expression", "Write the text in single or double quotes."),
    '"""': ("Triple quotes are not part of an expression", "Write the text in single or double quotes."),
}


def refusal(source: str, index: int, problem: str, fix: str) -> ExpressionError:
    """The error for a problem at a place in the source; people count columns from 1."""
    return ExpressionError(f"{problem} (column {index + 1}).", source=source, fix=fix)


def too_deep(source: str) -> ExpressionError:
    """The error for a source that is nested beyond what is read, wherever that is noticed."""
    return refusal(source, 0, f"Nested deeper than {DEEPEST_NESTING} levels", "Split it into several expressions.")


def to_python(source: str) -> str:
    """The source on one line of Python, each character in the column where it was."""
    if len(source) > LONGEST_SOURCE:
        problem = f"Longer than {LONGEST_SOURCE:,} characters ({len(source):,})"
        raise refusal(source, LONGEST_SOURCE, problem, "Split it, or compare with a name instead of a long list.")
    if not source.strip():
        raise refusal(source, 0, "The expression is empty", "Write a condition such as answer.rating > 5.")
    _check_depth(source)
    return _TOKEN.sub(lambda token: _replacement(source, token), source)


def _replacement(source: str, token: re.Match[str]) -> str:
    written = token[0]
    match token.lastgroup:
        case "text":
            return _checked_text(source, token)
        case "name":
            return _SPACE.sub(" ", f"  {written[2:-2]}  ")
        case "quoted":
            # How EDSL's users compare a field that holds a text: '{{ scenario.city }}' == 'Oslo'.
            return _SPACE.sub(" ", f"str({written[3:-3].removeprefix(' ')})").ljust(len(written))
        case "space":
            # A line end would end the expression, and Python does not accept every kind of white space.
            return " "
        case "habit" | "quotes":
            problem, fix = _HABITS[written]
            raise refusal(source, token.start(), problem, fix)
        case "trailer":
            problem = "A call, subscript or attribute of something that is not a name"
            raise refusal(source, token.start(), problem, "Use dotted names such as agent.age.")
        case _:
            return written


def _checked_text(source: str, token: re.Match[str]) -> str:
    written = token[0]
    if "{{" in written:
        problem = "A name among other text inside quotes is only text"
        raise refusal(source, token.start(), problem, "Write the name alone: {{ q.answer }} or '{{ q.answer }}'.")
    if "\n" in written or "\r" in written:
        raise refusal(source, token.start(), "A text runs over the end of a line", r"Write the line end as \n.")
    return written


def _check_depth(source: str) -> None:
    depth = chain = 0
    for token in _TOKEN.finditer(source):
        match token.lastgroup:
            case "opening":
                depth += 1
            case "closing":
                depth -= 1
            case "link":
                depth, chain = depth - 1, chain + 1
            case "method":
                depth, chain = depth - 1, chain + _METHOD_LINKS
            case "operator":
                chain += 1
            case "separator":
                chain = 0
            case _:
                continue
        if depth > DEEPEST_NESTING or chain > _LONGEST_CHAIN:
            raise too_deep(source)
