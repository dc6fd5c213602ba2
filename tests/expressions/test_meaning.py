"""What expressions mean, by example. Does not cover: agreement with SQLite (test_agreement)."""

import math
from collections.abc import Callable, Mapping

import pytest

from headrace import expressions
from headrace.expressions import Value, compile_closure, is_true, parse, truth

NAN = math.nan
HUGE = 2**70
BEYOND_FLOAT = 10**400


def evaluate(source: str, row: Mapping[str, Value]) -> Value:
    return compile_closure(parse(source), getter)(row)


def getter(name: str) -> Callable[[Mapping[str, Value]], Value]:
    return lambda row: row[name]


def nested(depth: int) -> Value:
    value: Value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("source", "x", "expected"),
    [
        # names, literals, braces
        ("x", 5, 5),
        ("{{ x }} == 5", 5, True),
        ("{{x}}>4", 5, True),
        ("x ==\n  5", 5, True),
        ("x == 'it''s'", "its", True),
        (r"x == '\d'", "\\d", True),
        ("[1, 'a', [None]]", None, [1, "a", [None]]),
        ("(1, -2)", None, [1, -2]),
        ("-9223372036854775808", None, -(2**63)),
        # equality
        ("x == None", None, True),
        ("x is None", None, True),
        ("x is not None", None, False),
        ("x != 5", None, True),
        ("x == 1", True, True),
        ("x == True", 1.0, True),
        ("x == 1", "1", False),
        ("x == 9007199254740993", 9007199254740992.0, False),
        ("x == x", NAN, False),
        ("x == [1, 2]", [1, 2], True),
        ("x == [1, 2]", None, False),
        # order
        ("x < 5", None, False),
        ("not (x < 5)", None, True),
        ("x < 5", "4", False),
        ("x >= 'a'", 7, False),
        ("x < 'b'", "a", True),
        ("x < x", [1], False),
        ("x <= x", [1], False),
        ("x < [2]", [1], False),
        ("None < None", None, False),
        ("x >= 1", NAN, False),
        ("x > 1e308", BEYOND_FLOAT, True),
        ("1 < x < 3", 2, True),
        ("1 < x < 3", 3, False),
        ("1 < x > 0 == 0", 2, True),
        ("x > False", True, True),
        # membership
        ("x in ['a', 'b']", "a", True),
        ("x not in ['a', 'b']", "a", False),
        ("x in [1, None]", None, True),
        ("x in [1]", True, True),
        ("x in [[1], 2]", [1], True),
        ("x in [1, 2]", [1], False),
        ("x not in [1, 2]", {}, True),
        ("x in []", None, False),
        ("1 in x", None, False),
        ("1 not in x", None, True),
        ("1 in x", "abc", False),
        ("'b' in x", "abc", True),
        ("'' in x", "", True),
        ("'b' in x", {"b": 1}, True),
        ("2 in x", [1, 2], True),
        ("x in 'abc'", None, False),
        ("contains(x, 'b')", ["b"], True),
        ("contains(x, 'b')", 5, False),
        # arithmetic
        ("x + 1", 2, 3),
        ("x + 1", True, 2),
        ("x + 1", None, None),
        ("x + 1", "a", None),
        ("x + 'b'", "a", "ab"),
        ("x * 3", "ab", None),
        ("x * 3", [1], None),
        ("x / 2", 5, 2.5),
        ("x / 9007199254740995", 2**62 + 1, 511.9999999999998),
        ("x / 0", 5, None),
        ("x // 0", 5, None),
        ("x % 0.0", 5, None),
        ("x // 2", -5, -3),
        ("x % 3", -5, 1),
        ("-x", -(2**63), 2.0**63),
        ("-x", "a", None),
        ("x + 1", 2**63 - 1, 2.0**63),
        ("x * x", 2**62, 2.0**124),
        ("x - x", math.inf, None),
        ("x - x", HUGE, 0.0),
        ("x + 1", BEYOND_FLOAT, math.inf),
        ("0 - x", BEYOND_FLOAT, -math.inf),
        ("x * 10", 1e308, math.inf),
        ("x // 1", math.inf, None),
        ("x + 1", NAN, None),
        # logic
        ("x and 5", 3, True),
        ("x or 0", 0, False),
        ("x or 'a'", 0, True),
        ("not x", "", True),
        ("not x", [], True),
        ("not x", NAN, False),
        ("x and 1 and 'a'", 1, True),
        ("x or 0 or None", 0, False),
        ("'a' if x else 'b'", None, "b"),
        # functions
        ("len(x)", "héé", 3),
        ("len(x)", [1, 2], 2),
        ("len(x)", 5, None),
        ("lower(x)", "ÄB", "äb"),
        ("upper(x)", "ß", "SS"),
        ("lower(x)", None, None),
        ("abs(x)", -2.5, 2.5),
        ("abs(x)", -(2**63), 2.0**63),
        ("abs(x)", NAN, None),
        ("round(x)", 2.5, 2),
        ("round(x)", 1e300, 1e300),
        ("round(x)", math.inf, math.inf),
        ("round(x)", NAN, None),
        ("round(x, 1)", 2.345, 2.3),
        ("round(x, -308)", 1.7e308, None),
        ("round(x, -1000000000000)", 2**62, 0),
        ("round(x, 1000000000000)", 0.5, 0.5),
        ("round(x, 'a')", 0.5, None),
        ("startswith(x, 'a')", "abc", True),
        ("startswith(x, 'a')", None, False),
        ("endswith(x, 'c')", "abc", True),
        ("endswith('abc', x)", 5, False),
        ("int(x)", "12", 12),
        ("int(x)", -2.9, -2),
        ("int(x)", "2.9", None),
        ("int(x)", math.inf, None),
        ("int(x)", "9" * 5000, None),
        ("float(x)", "1.5", 1.5),
        ("float(x)", "nan", None),
        ("float(x)", BEYOND_FLOAT, math.inf),
        ("str(x)", 1.5, "1.5"),
        ("str(x)", True, "True"),
        ("str(x)", None, None),
        ("str(x)", [1], None),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_an_expression_means_what_the_package_says(source: str, x: Value, expected: Value) -> None:
    value = evaluate(source, {"x": x})
    assert value == expected
    assert type(value) is type(expected)


def test_names_are_dotted_and_found_wherever_they_stand() -> None:
    expression = parse("{{ mood.answer }} == 'Good' and agent.age < limit or len(answer._x) > 3")
    assert expression.names == {"mood.answer", "agent.age", "limit", "answer._x"}


def test_an_expression_is_a_value_known_by_its_source() -> None:
    assert parse("x in [1, 2]") == parse("x in [1, 2]")
    assert len({parse("x in [1, 2]"), parse("x in [1, 2]"), parse("x == 1")}) == 2


def test_each_name_is_resolved_once_before_any_row_is_seen() -> None:
    asked: list[str] = []

    def resolve(name: str) -> Callable[[Mapping[str, Value]], Value]:
        asked.append(name)
        return getter(name)

    closure = compile_closure(parse("a > 1 or b > a or a == b"), resolve)
    assert asked == ["a", "b"]
    assert closure({"a": 0, "b": 1}) is True
    assert asked == ["a", "b"]


def test_a_list_that_an_expression_gives_is_the_callers_own() -> None:
    closure = compile_closure(parse("[1, 2]"), getter)
    first = closure({})
    assert isinstance(first, list)
    first.append(3)
    assert closure({}) == [1, 2]


def test_lists_too_deep_to_compare_are_unequal_rather_than_an_error() -> None:
    row = {"x": nested(100_000), "y": nested(100_000)}
    try:
        assert evaluate("x == y", row) is False
        assert evaluate("x != y", row) is True
        assert evaluate("x in y", row) is False
    finally:
        row.clear()


def test_an_integer_with_more_digits_than_python_writes_has_no_text() -> None:
    assert evaluate("str(x)", {"x": 10**5000}) is None


def test_a_closure_serves_as_a_predicate() -> None:
    assert truth(compile_closure(parse("x"), getter))({"x": "a"}) is True
    falsities: list[Value] = [None, False, 0, -0.0, "", [], {}]
    assert not any(is_true(value) for value in falsities)
    truths: list[Value] = [NAN, "0", [None], -1]
    assert all(is_true(value) for value in truths)


def test_the_public_names_are_these() -> None:
    assert expressions.__all__ == sorted(expressions.__all__)
    assert set(expressions.__all__) == {
        "Column",
        "ColumnKind",
        "Expression",
        "OuterCall",
        "Sql",
        "SqlTerm",
        "Value",
        "compile_closure",
        "compile_sql",
        "compile_value",
        "is_true",
        "parse",
        "parse_call",
        "truth",
    }
