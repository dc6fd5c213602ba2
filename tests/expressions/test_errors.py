"""What is refused, and what the error tells. Does not cover: names that nobody knows (the caller's)."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.errors import ExpressionError
from headrace.expressions import parse


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("x >", "Not a valid expression"),
        ("rating > ", "something is missing at its end (column 9)"),
        ("x is not null", "Write None: mood is None"),
        ("x IS NULL", "Write 'is' in small letters"),
        ("x > 1 AND y", "Write 'and' in small letters"),
        ("x > 1 OR y", "Write 'or' in small letters"),
        ("NOT x", "Write 'not' in small letters"),
        ("x like '%bar%'", "startswith(mood, 'G')"),
        ("x not like '%bar%'", "startswith(mood, 'G')"),
        ("x LIKE '%bar%'", "startswith(mood, 'G')"),
        ("x between 1 and 2", "Write 18 <= age <= 30"),
        ("x BETWEEN 1 AND 2", "Write 18 <= age <= 30"),
        ("x <> 1", "Write !="),
        ("x == (1", "'(' was never closed (column 6)"),
        ("x = 5", "A single = does not compare (column 3)"),
        ("x = 5", "Write =="),
        ("x && y", "Write 'and'"),
        ("x || y", "Write 'or'"),
        ("!x", "Write 'not'"),
        ("x & y", "Write 'and'"),
        ("x | y", "Write 'or'"),
        ("~x", "Write 'not'"),
        ("x ** 2", "The operator **"),
        ("+x", "Leave the plus sign out"),
        ("x == 1 # why", "Comments"),
        ("'I am {{ agent.age }}' == 'I am 5'", "Write the name alone"),
        ("'{{ agent.__class__ }}' == 'a'", "two underscores"),
        ("{{ a + b }} > 1", "not one dotted name (column 1)"),
        ("{{ }}", "not one dotted name"),
        ("{x} == 1", "A set is not part"),
        ("{'a': 1}", "A dict is not part"),
        ("ünï == open(x)", "There is no function open (column 8)"),
        ("lowr(x)", "Did you mean 'lower'?"),
        ("x.len() == 1", "Write len(x)."),
        ("x.lowr() == 'a'", "Did you mean 'lower'?"),
        ("x.startswith()", "Give it 1."),
        ("x.lower('a')", "Give it 0."),
        ("x.lower()[0]", "A call, subscript or attribute of something that is not a name"),
        ("x" + ".lower()" * 1_000, "Nested deeper than 50"),
        ("x" + ".lower()" * 60, "Nested deeper than 50"),
        ("f(x)(y)", "A call, subscript or attribute of something that is not a name"),
        ("round(x, ndigits=2)", "single ="),
        ("round(x, **y)", "no named arguments"),
        ("len(x, y)", "len() does not take 2 arguments"),
        ("round()", "Give it 1 or 2."),
        ("startswith(x)", "Give it 2."),
        ("x[y]", "This subscript"),
        ("x[1:2]", "This subscript"),
        ("x[True]", "This subscript"),
        ("x['']", "This subscript"),
        ("x['__class__']", "two underscores"),
        ("[1, 2][0]", "This subscript"),
        ("x[0](y)", "A call, subscript or attribute of something"),
        ("x" + "[0]" * 3_000, "Nested deeper than 50"),
        ("x" + "['a']" * 60, "Nested deeper than 50"),
        ("lambda: 1", "A lambda"),
        ("[y for y in x]", "A comprehension"),
        ("len(y for y in x)", "A comprehension"),
        ("{y for y in x}", "A comprehension"),
        ("(x := 1)", "The assignment :="),
        ("f'{x}'", "An f-string"),
        ("await x", "await"),
        ("len(*x)", "A starred value"),
        ("'a'()", "A call of something that is not a function"),
        ("x" + "()" * 4_999, "A call, subscript or attribute"),
        ("x" + "+x" * 4_999, "Nested deeper than 50"),
        ("'a'.b", "An attribute of something that is not a name"),
        ("x.__class__", "two underscores"),
        ("__x", "two underscores"),
        ("x is 5", "'is' compares only with None"),
        ("x in [y]", "A list may hold only"),
        ("x == b'a'", "A value of type bytes"),
        ("x == 1j", "A value of type complex"),
        ("x == ...", "A value of type ellipsis"),
        ("x == '''a'''", "Triple quotes"),
        ("x == 'a\nb'", "runs over the end of a line"),
        ("x == 'a", "unterminated string"),
        ("x; y", "Not a valid expression"),
        ("x == 1\x00", "null bytes"),
        ("x == '\ud800'", "cannot be read"),
        ("x == " + "1" * 5000, "Not a valid expression"),
        ("x" * 10_001, "Longer than 10,000 characters"),
        ("(" * 51 + "x" + ")" * 51, "Nested deeper than 50"),
        ("not " * 51 + "x", "Nested deeper than 50"),
        ("-" * 9_999 + "x", "Nested deeper than 50"),
        ("x + " * 51 + "x", "Nested deeper than 50"),
        ("x if x else " * 800 + "x", "Nested deeper than 50"),
        ("lambda: " * 1_200 + "x", "lambda"),
        ("[" * 51 + "]" * 51, "Nested deeper than 50"),
        ("x" + ".x" * 4_999, "Nested deeper than 50"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_outside_the_language_is_refused_with_a_reason(source: str, told: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(source)
    assert told.lower() in str(caught.value).lower()
    assert "(column " in str(caught.value)
    assert caught.value.source == source
    assert caught.value.fix


@pytest.mark.parametrize(
    "source",
    [
        "not " * 49 + "x",
        "(" * 50 + "x" + ")" * 50,
        "x == '" + "(" * 60 + "'",
        "x == '" + "-" * 60 + "'",
        " or ".join(["x == 1"] * 900),
        "x in [" + "1, " * 3_000 + "]",
        "x == 'a = b && c # d !'",
        "_x == 1",
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_is_merely_long_or_odd_is_read(source: str) -> None:
    assert parse(source).source == source


WORDS = st.sampled_from(
    [
        *"()[]{}<>=!&|.,:;'\"\\#-+*/%~@ \n\t\0\ud800\u2028é🙂x1_",
        *(
            "{{",
            "}}",
            "==",
            "not ",
            "and ",
            "or ",
            "if ",
            "else ",
            "in ",
            "is ",
            "None",
            "lambda ",
            "for ",
            "f'",
            "1e9",
        ),
        *("len(", "round(", "await ", "yield ", ":=", "**", "0x", "1j", "b'", '"""', "x.y", "__"),
    ]
)


@given(st.lists(WORDS, max_size=40).map("".join) | st.text(max_size=60))
@example("x if x else " * 800)
@example("0x" + "f" * 9_000)
def test_no_text_makes_parse_raise_anything_but_its_own_error(source: str) -> None:
    with suppress(ExpressionError):
        assert parse(source).source == source
