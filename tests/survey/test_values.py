import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import InvalidInput
from headrace.survey.values import (
    Remark,
    UnusableValue,
    check_fields,
    decode_fields,
    decode_value,
    encode_fields,
    encode_value,
    from_sql,
    repair_text,
    to_sql,
)

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)


def same(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list):
        return type(right) is list and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return type(right) is dict and list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


@given(st.dictionaries(st.text(), values, max_size=5))
def test_fields_come_back_as_they_were(fields: dict[str, Any]):
    row, remark = encode_fields(fields)
    assert remark is not Remark.REPAIRED
    assert same(decode_fields(row), fields)
    assert same(decode_fields(row.decode()), fields)


@given(values)
def test_an_answer_comes_back_from_its_column_as_it_was(value: Any):
    assert same(from_sql(to_sql(value, as_bool=False), as_bool=False), value)


@given(
    st.recursive(
        scalars | st.binary(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.just("$bytes"), inner, max_size=3),
    )
)
def test_what_agents_keep_comes_back_as_it_was_bytes_too(value: Any):
    assert same(decode_value(encode_value(value, with_bytes=True)), value)


def test_bytes_are_no_answer_and_no_trait():
    for refused in (lambda: encode_value({"a": [b"x"]}), lambda: encode_fields({"a": b"x"})):
        with pytest.raises(UnusableValue, match="bytes"):
            refused()


@given(st.booleans())
def test_a_column_of_booleans_holds_zero_and_one(value: bool):
    assert to_sql(value, as_bool=True) == int(value)
    assert from_sql(int(value), as_bool=True) is value


def test_dicts_that_look_like_tags_are_not_taken_for_them():
    fields = {"a": {"$int": "5"}, "b": {"$dict": {"$float": "nan"}}}
    assert decode_fields(encode_fields(fields)[0]) == fields


def test_unpaired_surrogates_are_replaced_and_that_is_noted():
    row, remark = encode_fields({"a": "x\ud800y", "b": ["\udfff"]})
    assert remark is Remark.REPAIRED
    assert decode_fields(row) == {"a": "x\ufffdy", "b": ["\ufffd"]}
    assert repair_text("emoji 🎈 stays") == ("emoji 🎈 stays", False)


def test_numpy_numbers_are_numbers():
    numpy = pytest.importorskip("numpy")
    row, _ = encode_fields({"a": numpy.int64(5), "b": numpy.float32(0.5), "c": numpy.float64("nan")})
    decoded = decode_fields(row)
    assert (decoded["a"], decoded["b"]) == (5, 0.5)
    assert math.isnan(decoded["c"])


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {3}}, b"bytes", [10**5000]], ids=type)
def test_what_cannot_be_stored_is_refused_by_name(value: Any):
    with pytest.raises(UnusableValue, match=r"'trait'|field name 1"):
        encode_fields({"trait": value})


def test_a_value_nested_without_end_is_refused():
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(UnusableValue, match="nested"):
        encode_fields({"a": endless})


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"a":1}{"b":2}'],
        [b'{"a":1,', b'"b":2}', b'{"c":1}{"d":1}'],
        [b'{"a":1}', b'{"a":1}\n{"b":2}', b""],
        [b'{"a":[{}', b"{}]}"],
        [b'{"a":1}', b'{"a":{"$int":"x"}}'],
        [b'{"a":1}', b"[1]"],
        [b'{"a":1}', b""],
    ],
)
def test_a_row_that_cannot_be_decoded_is_found_among_others(rows: list[bytes]) -> None:
    with pytest.raises((ValueError, TypeError, InvalidInput)):
        check_fields(rows)


def test_rows_that_can_be_decoded_pass_the_check() -> None:
    encoded = [encode_fields(fields)[0] for fields in ({"a": "x\n}\n{"}, {"b": float("nan")}, {}, {"c": {"d": [1]}})]
    check_fields(encoded)
    check_fields([])
    assert [decode_fields(row) for row in encoded[2:]] == [{}, {"c": {"d": [1]}}]
