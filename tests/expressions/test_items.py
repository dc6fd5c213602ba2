"""Items of lists, texts and dicts, and names that are no identifiers."""

import pytest

from headrace.expressions import compile_closure, compile_sql, parse
from headrace.expressions.sql import Column, ColumnKind

VALUES = {
    "brands": ["Acme", "Bolt"],
    "q.answer": {"first": "Acme", "many": [1, [2, 3]]},
    "word": "Oslo",
    "count": 3,
    "nothing": None,
    "scenario.Review Text": "good",
    "agent.first name": "Ada",
    "scenario.a.b": "dotted",
}


def value(source: str):
    return compile_closure(parse(source), lambda name: lambda _row: VALUES[name])(None)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("brands[0]", "Acme"),
        ("brands[-1]", "Bolt"),
        ("brands[2]", None),
        ("{{ brands[1] }} == 'Bolt'", True),
        ("word[0]", "O"),
        ("count[0]", None),
        ("nothing[0]", None),
        ("brands[0][1]", "c"),
        ('scenario["Review Text"]', "good"),
        ("{{ scenario['Review Text'] }} == 'good' and brands[0] == 'Acme'", True),
        ("agent['first name']", "Ada"),
        ("'{{ word }}' == 'Oslo'", True),
        ('"{{word}}" in ["Oslo", "Lima"]', True),
        ("'{{ scenario[\"Review Text\"] }}' == 'good'", True),
        ("'{{ count }}' == '3' and {{ count }} == 3", True),
        ("'{{ nothing }}' == 'x'", False),
        ("scenario['a.b']", "dotted"),
    ],
)
def test_items_and_quoted_names(source: str, expected: object):
    assert value(source) == expected


def test_a_quoted_key_is_a_part_of_the_name_and_a_number_is_not():
    expression = parse('q.answer["many"][1][0] == 2 or scenario["Review Text"] == "x"')
    assert expression.names == {"q.answer.many", "scenario.Review Text"}


def test_an_item_has_no_exact_sql():
    column = Column("a0", frozenset({ColumnKind.JSON}))
    assert compile_sql(parse("x[0] == 1"), lambda _name: column) is None
