"""Random expressions, as source text, and random rows over columns of every kind, for test_agreement."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from headrace.expressions import Column, ColumnKind, Value
from headrace.survey.values import SqlValue, encode_value

SMALLEST, LARGEST = -(2**63), 2**63 - 1

INTS = st.sampled_from([0, 1, -1, 2, 3, 2**53, 2**53 + 1, 2**62, LARGEST, SMALLEST, SMALLEST + 1]) | st.integers(
    SMALLEST, LARGEST
)
REALS = st.sampled_from(
    [
        *(
            0.0,
            -0.0,
            0.5,
            1.0,
            -1.0,
            2.0,
            1e308,
            -1e308,
            5e-324,
            2.0**53,
            2.0**63,
            -(2.0**63),
            math.inf,
            -math.inf,
        )
    ]
) | st.floats(allow_nan=False)
TEXTS = st.sampled_from(
    ["", "0", "1", "a", "A", "ab", "b", "a\0", "\0", "a\0b", "é", "z", "🙂", "\uffff", "%", "_"]
) | (st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
OUTSIDE_SQLITE = st.sampled_from([math.nan, 2**63, 2**70, -(2**70), 10**400])
LISTS = st.lists(
    st.none() | st.booleans() | INTS | REALS | TEXTS | OUTSIDE_SQLITE | st.lists(TEXTS, max_size=2), max_size=4
)
DICTS = st.dictionaries(TEXTS | st.sampled_from(["$int", "$float", "$dict", "$a", '"', "a.b", "[0]"]), INTS, max_size=2)

VALUES: Mapping[ColumnKind, st.SearchStrategy[Any]] = {
    ColumnKind.NULL: st.none(),
    ColumnKind.BOOL: st.booleans(),
    ColumnKind.INT: INTS,
    ColumnKind.REAL: REALS,
    ColumnKind.TEXT: TEXTS,
    ColumnKind.JSON: LISTS | DICTS,
    ColumnKind.TAGGED: OUTSIDE_SQLITE,
}


@dataclass(frozen=True, slots=True)
class Field:
    """A column of the test table under the dotted name that expressions use."""

    name: str
    kinds: frozenset[ColumnKind]

    @property
    def column(self) -> str:
        return f'"{self.name}"'

    def values(self) -> st.SearchStrategy[Value]:
        return st.one_of([VALUES[kind] for kind in sorted(self.kinds, key=lambda kind: kind.value)])


def _field(name: str, *kinds: ColumnKind) -> Field:
    return Field(name, frozenset(kinds))


NUMBERS = [
    _field("answer.yes", ColumnKind.BOOL),
    _field("answer.perhaps", ColumnKind.BOOL, ColumnKind.NULL),
    _field("answer.count", ColumnKind.INT),
    _field("rating", ColumnKind.INT, ColumnKind.NULL),
    _field("agent.height", ColumnKind.REAL),
    _field("agent.number", ColumnKind.BOOL, ColumnKind.INT, ColumnKind.REAL, ColumnKind.NULL),
]
WORDS = [_field("mood.answer", ColumnKind.TEXT), _field("scenario.city", ColumnKind.TEXT, ColumnKind.NULL)]
OTHERS = [
    _field("nothing", ColumnKind.NULL),
    _field("mixed", ColumnKind.INT, ColumnKind.REAL, ColumnKind.TEXT, ColumnKind.NULL),
    _field("answer.list", ColumnKind.JSON, ColumnKind.TAGGED, ColumnKind.NULL),
    _field("answer.tagged", ColumnKind.TAGGED, ColumnKind.INT, ColumnKind.NULL),
]
FIELDS = [*NUMBERS, *WORDS, *OTHERS]

ROWS = st.lists(st.fixed_dictionaries({field.name: field.values() for field in FIELDS}), min_size=1, max_size=8)


def column(name: str) -> Column | None:
    """What `compile_sql` is told about the test table."""
    return next((Column(field.column, field.kinds) for field in FIELDS if field.name == name), None)


def stored(value: Value) -> SqlValue:
    """A value as the test table holds it."""
    outside = (isinstance(value, float) and math.isnan(value)) or (
        isinstance(value, int) and not SMALLEST <= value <= LARGEST
    )
    return encode_value(value) if outside or isinstance(value, (list, dict)) else value


# --- source text


def _written(value: Value) -> str:
    # repr() writes an infinity as a name.
    return repr(value).replace("inf", "1e999") if isinstance(value, float) else repr(value)


def _names(fields: list[Field]) -> st.SearchStrategy[str]:
    plain = st.sampled_from([field.name for field in fields])
    return plain | plain.map(lambda name: f"{{{{ {name} }}}}")


def _format(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda written: template.format(*written))


_orders = st.sampled_from(["<", "<=", ">", ">="])
_equals = st.sampled_from(["==", "!="])
_ins = st.sampled_from(["in", "not in"])
_sums = st.sampled_from(["+", "-", "*", "/"])
_rounded_down = st.sampled_from(["//", "%"])
_places = st.sampled_from(["0", "1", "-1", "-2", "3"])
_of_text = st.sampled_from(["startswith", "contains", "endswith"])
_of_one = st.sampled_from(["len", "lower", "upper", "abs", "round", "int", "float", "str"])

_number_leaves = _names(NUMBERS) | (INTS | REALS | st.booleans()).map(_written)
_text_leaves = _names(WORDS) | TEXTS.filter(lambda text: "{{" not in text).map(_written)
_item_lists = st.lists(st.none() | INTS | REALS | TEXTS, max_size=4).filter(lambda items: "{{" not in repr(items))
_lists = _item_lists.map(lambda items: f"[{', '.join(map(_written, items))}]")
_odd_leaves = _names(OTHERS) | st.sampled_from(["None", str(2**63), str(2**70), r"'\ud800'"]) | _lists

numbers: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        _number_leaves,
        _number_leaves,
        _format("({} {} {})", numbers, _sums, numbers),
        _format("(-{})", numbers),
        _format("({} if {} else {})", numbers, conditions, numbers),
    )
)
scalars = numbers | _text_leaves
_mixed = scalars | _names(OTHERS[:2])
anything: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        scalars,
        _odd_leaves,
        conditions,
        _format("({} {} {})", anything, _rounded_down | _sums, anything),
        _format("({} if {} else {})", anything, conditions, anything),
        _format("{}({})", _of_one, anything),
        _format("round({}, {})", anything, anything),
    )
)
conditions: st.SearchStrategy[str] = st.deferred(
    lambda: st.one_of(
        _format("({} {} {})", numbers, _orders, numbers),
        _format("({} {} {})", _text_leaves, _orders, _text_leaves),
        _format("({} {} {} {} {})", numbers, _orders, _number_leaves, _orders | _equals, numbers),
        _format("({} {} {})", _mixed, _equals | _orders, _mixed),
        _format("({} {} {})", _mixed, _ins, _lists),
        _format("({} {} {})", _text_leaves, _ins, _text_leaves),
        _format("({} {} {})", _text_leaves, _ins, _names(OTHERS[2:3])),
        _format("({}[{}] {} {})", _names(OTHERS[2:3]), _places, _equals, _text_leaves),
        _format("({}[{}] {} {})", _names(OTHERS[2:3]), _places, _ins, _lists),
        _format("(len({}) {} {})", _names(OTHERS[2:3]), _orders | _equals, _places),
        _format("({} {})", _names(FIELDS), st.sampled_from(["is None", "is not None", "== None"])),
        _format("{}({}, {})", _of_text, _text_leaves, _text_leaves),
        _format("({} {} {})", conditions | scalars, st.sampled_from(["and", "or"]), conditions | scalars),
        _format("(not {})", conditions | scalars),
        _format("({} {} {})", anything, _orders | _equals | _ins, anything),
    )
)
expressions = conditions | scalars | anything
