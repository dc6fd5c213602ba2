import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import QuestionList
from headrace.errors import InvalidAnswer, SurveyError
from headrace.survey.questions import question_from_dict
from tests.survey.questions.written_forms import answer_to, written_forms

TEXT = {"question_name": "q", "question_text": "Which?"}
two_or_three = QuestionList(**TEXT, min_list_items=2, max_list_items=3)
words = st.text(st.sampled_from("abc de'\"[{,-é\n"), min_size=1, max_size=8)
items = words | st.integers(-100, 100) | st.none() | st.booleans()


@settings(max_examples=300)
@given(st.lists(items, min_size=2, max_size=3), st.data())
def test_a_list_in_any_form_is_accepted_with_the_same_value(value: list[Any], data: st.DataObject):
    text = data.draw(written_forms(value))
    assert answer_to(two_or_three, text) == value


@settings(max_examples=300)
@given(st.lists(items, max_size=6).filter(lambda value: len(value) not in (2, 3)), st.data())
def test_a_list_of_another_length_is_never_accepted(value: list[Any], data: st.DataObject):
    with pytest.raises(InvalidAnswer, match="item"):
        answer_to(two_or_three, data.draw(written_forms(value)))


@pytest.mark.parametrize("text", ["a, b", "none", '{"a": 1}', "5", '["a", "b"', "a\nb", '["a"] or ["b", "c"] '])
def test_what_is_no_list_is_not_accepted(text: str):
    with pytest.raises(InvalidAnswer):
        answer_to(two_or_three, text)


def test_marked_lines_are_a_list():
    assert two_or_three.read("- red\n- green\n\nI like both.") == (["red", "green"], "I like both.")


def test_what_stands_behind_the_list_is_the_comment():
    assert two_or_three.read('["red", "green"]\nThey are calm.') == (["red", "green"], "They are calm.")


def test_any_number_of_items_is_accepted_where_that_is_permitted():
    assert answer_to(QuestionList(**TEXT, max_list_items=1, permissive=True), '["a", "b"]') == ["a", "b"]


@pytest.mark.parametrize(
    ("bounds", "told"),
    [
        ({}, 'list, in this form: ["item 1", "item 2", "item 3"]'),
        ({"min_list_items": 0}, "of at least 0 items"),
        ({"max_list_items": 3}, "of at most 3 items"),
        ({"max_list_items": 1}, '["item 1"]'),
        ({"min_list_items": 2, "max_list_items": 3}, "of 2 to 3 items"),
        ({"min_list_items": 2, "max_list_items": 2}, "of 2 items"),
    ],
)
def test_the_prompt_tells_how_many_items(bounds: dict[str, int], told: str):
    assert told in QuestionList(**TEXT, **bounds).instructions()


@pytest.mark.parametrize(
    "bounds", [{"min_list_items": -1}, {"max_list_items": 1.5}, {"min_list_items": 3, "max_list_items": 2}]
)
def test_bounds_that_cannot_be_met_are_refused(bounds: dict[str, Any]):
    with pytest.raises(SurveyError):
        QuestionList(**TEXT, **bounds)


def test_a_question_comes_back_from_its_settings():
    assert question_from_dict(json.loads(json.dumps(two_or_three.to_dict()))) == two_or_three


def test_a_copy_of_the_prompts_form_is_no_answer():
    question = QuestionList(question_name="colours", question_text="Name two colours.")
    assert '["item 1", "item 2", "item 3"]' in question.instructions()
    for copied in (["item 1"], ["item 1", "item 2"], ["item 1", "item 2", "item 3"]):
        with pytest.raises(InvalidAnswer, match="repeats the form"):
            question.accept(copied)
    assert question.accept(["item 2", "red"]) == ["item 2", "red"]
