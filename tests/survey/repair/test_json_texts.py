import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.survey.repair.json_texts import LONGEST_REPAIRED, json_in

# Others have escapes of their own in Python, which no model writes.
printable = st.characters().filter(lambda letter: letter.isprintable() or letter == "\n")
texts = st.text(printable, max_size=20)
scalars = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(-1e300, 1e300) | texts
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4))
lists = st.lists(values, max_size=4)
objects = st.dictionaries(texts, values, max_size=4).filter(lambda held: "answer" not in held)
words = st.sampled_from(["Sure!", "Here is my answer:", "I think so.", "It's what I'd pick [so far].", "Well {x},"])


def with_commas(value: Any) -> str:
    """JSON with a comma behind each last item."""
    match value:
        case list():
            return "[" + "".join(f"{with_commas(item)}, " for item in value) + "]"
        case dict():
            return "{" + "".join(f"{json.dumps(key)}: {with_commas(item)}, " for key, item in value.items()) + "}"
        case _:
            return json.dumps(value)


def shape_of(value: object) -> type[Any]:
    return list if isinstance(value, list) else dict


@settings(max_examples=300)
@given(lists | objects, st.sampled_from([json.dumps, repr, with_commas]), words, words)
def test_json_in_any_form_has_the_same_value(value: Any, written: Any, before: str, behind: str):
    text = written(value)
    for form in (
        text,
        f"  {text}\n",
        f"```json\n{text}\n```",
        f"```\n{text}\n```\n{behind}",
        f"{before}\n```python\n{text}\n```",
        f"{before} {text}",
        f"{text}\n{behind}",
        f"{before}\n{text}\n{behind}",
        f'{{"answer": {text}, "comment": "so"}}',
        f"{{'answer': {text}}}",
        f"{before} {{'answer': {text}, 'comment': 'so'}}",
    ):
        found = json_in(form, shape_of(value))
        assert found is not None, form
        assert found.value == value
        assert repr(found.value) == repr(value)  # True is not 1


@settings(max_examples=300)
@given(lists.filter(bool), lists.filter(bool))
def test_two_lists_in_a_sentence_are_not_repaired(one: list[Any], other: list[Any]):
    found = json_in(f"Either {json.dumps(one)} or {json.dumps(other)}.", list)
    if one == other:
        assert found is not None
    else:
        assert found is None


@settings(max_examples=300)
@given(lists.filter(bool) | objects.filter(bool), st.data())
def test_a_cut_off_value_is_never_repaired(value: Any, data: st.DataObject):
    text = json.dumps(value)
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    assert json_in(cut, shape_of(value)) is None
    assert json_in(f"Sure: {cut}", shape_of(value)) is None


@settings(max_examples=500)
@given(st.text(st.sampled_from("[]{}\"'\\,:1a \n`TrueNone-"), max_size=60))
def test_any_text_gives_a_value_of_its_shape_or_none(text: str):
    for shape in (list, dict):
        found = json_in(text, shape)
        assert found is None or isinstance(found.value, shape)


def test_what_python_writes_is_read():
    found = json_in("{'it': \"it's\", 'yes': True, 'none': None, 0: 'a \\'b\\' \"c\"', bare: 1.5}", dict)
    assert found is not None
    assert found.value == {"it": "it's", "yes": True, "none": None, "0": "a 'b' \"c\"", "bare": 1.5}


@pytest.mark.parametrize(
    "text",
    [
        "['it's', 'b']",  # where does the first text end?
        "[red, green]",
        '["a" "b"]',
        '["a",, "b"]',
        '["a", x, ["b"]]',  # the inner list is part of something broken
        '[["a"], ["b"]',
        "[1, NaN]",
        "[1e999]",
        "[01]",
        "[1.2.3]",
        "[__import__('os')]",
        "[" * 100_000,
        "[" * 500 + "]" * 500,
        '["\\x"]',
        "",
        "no list at all",
    ],
)
def test_what_is_no_list_is_not_repaired(text: str):
    assert json_in(text, list) is None


def test_a_key_twice_is_not_repaired():
    assert json_in("{'a': 1, 'a': 2}", dict) is None


def test_a_value_of_another_shape_is_none():
    assert json_in('{"items": ["a"]}', list) is None
    assert json_in('[{"a": 1}]', dict) is None


def test_the_text_behind_the_value_is_the_comment():
    found = json_in('["a"]\nsince [1] says so', list)
    assert found == (["a"], "since [1] says so")


@pytest.mark.parametrize("start", ["[", "{", "['", '["a",', "```", "[{'", "['a]", "{'a':[", "- ", "\\"])
def test_long_texts_take_little_time(start: str):
    text = start * (LONGEST_REPAIRED // len(start))
    began = time.process_time()
    json_in(text, list)
    assert time.process_time() - began < 5
