"""Replies whose JSON would take far more memory than its text."""

import json
import time
import tracemalloc

import msgspec
import pytest

from headrace.survey.repair.bounded_json import MOST_VALUE_BYTES, TooManyValues, check_values, decode_bounded

_LETTERS = 15_000_000

BOMBS = {
    "empty lists": "[" + ",".join(["[]"] * (_LETTERS // 3)) + "]",
    "empty objects": "[" + ",".join(["{}"] * (_LETTERS // 3)) + "]",
    "objects in objects of a list": "[" + ",".join(['{"a":{}}'] * (_LETTERS // 9)) + "]",
    "numbers": "[" + ",".join(["7"] * (_LETTERS // 2)) + "]",
    "short texts": "[" + ",".join(['"ab"'] * (_LETTERS // 5)) + "]",
    "keys": "{" + ",".join(f'"{number}":1' for number in range(_LETTERS // 9)) + "}",
    "behind a long text": '{"why":"' + "[," * 1_000_000 + '","answer":[' + ",".join(["[]"] * 3_000_000) + "]}",
    "never closed": "[" * _LETTERS,
    "quotes": '"' * _LETTERS,
}


@pytest.mark.parametrize("text", BOMBS.values(), ids=BOMBS)
def test_values_that_would_take_too_much_memory_are_not_made(text: str) -> None:
    began_s = time.process_time()
    with pytest.raises(TooManyValues, match="48 MB"):
        decode_bounded(text)
    assert time.process_time() - began_s < 5


WELL = {
    "a text of commas and brackets": json.dumps({"answer": "[],{}" * 3_000_000}),
    "a text of quotes": json.dumps({"answer": 'He said "no", [she] {said} "yes". ' * 400_000}),
    "a text of backslashes": json.dumps({"answer": '\\"' * 4_000_000}),
    "a list of sentences": json.dumps(["A sentence, as people write them, of some length."] * 200_000),
    "a text that is not closed": '{"answer": "' + "a, b [c] " * 1_000_000,
    "a text that ends in a backslash": '{"answer": "' + ",[{" * 3_000_000 + "\\",
}


@pytest.mark.parametrize("text", WELL.values(), ids=WELL)
def test_long_texts_are_decoded_whatever_they_hold(text: str) -> None:
    check_values(text)
    check_values(text.encode())
    try:
        whole = json.loads(text)
    except ValueError:
        with pytest.raises(msgspec.DecodeError) as refused:
            decode_bounded(text)
        assert not isinstance(refused.value, TooManyValues)
    else:
        assert decode_bounded(text) == whole


@pytest.mark.parametrize("item", ["[]", '{"a":1}', "1.5", '"ab"'])
def test_what_is_let_through_takes_no_more_than_the_bound(item: str) -> None:
    count = 1_100_000 // (len(item) + 1)
    text = "[" + ",".join([item] * count) + "]"
    while True:  # as many as are let through
        longer = "[" + ",".join([item] * (count * 2)) + "]"
        try:
            check_values(longer)
        except TooManyValues:
            break
        text, count = longer, count * 2
    tracemalloc.start()
    try:
        value = msgspec.json.decode(text)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(value) == count
    assert taken <= MOST_VALUE_BYTES * 1.1
