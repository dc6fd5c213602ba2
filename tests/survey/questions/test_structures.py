import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionDict, QuestionExtract, QuestionMatrix, QuestionPydantic, Survey
from headrace.errors import InvalidAnswer, SurveyError
from headrace.models.provider import Request
from headrace.survey.questions import Question, question_from_dict
from tests.survey.questions.written_forms import answer_to, written_forms

TEXT = {"question_name": "q", "question_text": "What?"}
PERSON = {
    "title": "Person",
    "type": "object",
    "properties": {"name": {"type": "string"}, "price": {"type": "number"}, "tags": {"type": "array"}},
    "required": ["name", "price"],
}
matrix = QuestionMatrix(
    **TEXT, question_items=["Price", "Good taste"], question_options=[1, 2, 3], option_labels={1: "bad", 3: "good"}
)
words_matrix = QuestionMatrix(**TEXT, question_items=["a", "b"], question_options=["Yes", "No"])
recipe = QuestionDict(
    **TEXT, answer_keys=["title", "steps", "count"], value_types=["str", list[str], int], value_descriptions=list("xyz")
)
person = QuestionExtract(**TEXT, answer_template={"name": "Ada", "age": 36, "tags": ["x"], "at": {"city": "Oslo"}})
fits_schema = QuestionPydantic(**TEXT, pydantic_model_schema=PERSON)
words = st.text(st.sampled_from("abc de'\"[{,é\n"), max_size=8)
points = st.sampled_from([1, 2, 3])


@settings(max_examples=300)
@given(points, points, st.data())
def test_a_matrix_in_any_form_is_accepted_with_the_same_value(price: int, taste: int, data: st.DataObject):
    expected = {"Price": price, "Good taste": taste}
    for form in (
        expected,
        {"price": str(price), "good  taste": f" {taste}."},
        {"0": price - 1, "1": taste - 1},  # as EDSL's prompt asks for it
    ):
        assert answer_to(matrix, data.draw(written_forms(form))) == expected


@settings(max_examples=200)
@given(st.sampled_from(["Yes", "No"]), st.sampled_from(["Yes", "No"]), st.data())
def test_a_matrix_of_words_is_accepted_in_any_form(one: str, other: str, data: st.DataObject):
    codes = {"Yes": 0, "No": 1}
    for form in ({"a": one, "b": other}, {"A": one.lower(), "b": other.upper()}, {"0": codes[one], "1": codes[other]}):
        assert answer_to(words_matrix, data.draw(written_forms(form))) == {"a": one, "b": other}


@pytest.mark.parametrize(
    "given",
    [
        {"Price": 1},
        {"Price": 1, "Good taste": 4},
        {"Price": 1, "Good taste": None},
        {"Price": 1, "Good taste": True},
        {"Price": 1, "Good taste": 1, "Look": 1},
        {"0": 1, "1": 7},
        [1, 2],
        "fine",
    ],
)
def test_other_matrices_are_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(matrix, given if isinstance(given, str) else json.dumps(given))


def test_a_matrix_shows_its_items_options_and_labels():
    assert matrix.listing() == "Items:\n- Price\n- Good taste\n\nOptions:\n- 1: bad\n- 2\n- 3: good"


@settings(max_examples=300)
@given(words | st.none(), st.lists(words, max_size=3), st.integers(-(10**9), 10**9), st.data())
def test_a_dict_in_any_form_is_accepted_with_the_same_value(title: Any, steps: Any, count: int, data: st.DataObject):
    expected = {"title": title, "steps": steps, "count": count}
    assert answer_to(recipe, data.draw(written_forms(expected))) == expected
    loose = {"title": title, "steps": steps, "count": str(count), "more": 1}
    assert answer_to(recipe, data.draw(written_forms(loose))) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"title": "a", "steps": ["b"]},
        {"title": "a", "steps": "b", "count": 1},
        {"title": "a", "steps": ["b"], "count": 1.5},
        {"title": "a", "steps": ["b"], "count": "many"},
        {"title": {"a": 1}, "steps": [], "count": 1},
        ["a", ["b"], 1],
        "a recipe",
    ],
)
def test_other_dicts_are_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(recipe, given if isinstance(given, str) else json.dumps(given))


def test_a_dict_tells_its_keys_types_and_descriptions():
    assert '- "steps" (list[str]): y' in recipe.instructions()


@pytest.mark.parametrize(
    ("keys", "types", "reply", "expected"),
    [
        (["answer"], ["dict"], '{"answer": {"a": 1}}', {"answer": {"a": 1}}),
        (["answer"], ["dict"], 'Here it is:\n```json\n{"answer": {"a": 1}}\n```', {"answer": {"a": 1}}),
        (["answer"], ["dict"], '{"answer": {"answer": 1}}', {"answer": {"answer": 1}}),
        (["answer", "comment"], ["dict", "str"], '{"answer": {}, "comment": "so"}', {"answer": {}, "comment": "so"}),
        (["answer"], ["str"], '{"answer": {"answer": "x"}, "comment": "so"}', {"answer": "x"}),
        (["a"], ["int"], '{"answer": {"a": 1}, "comment": "so"}', {"a": 1}),
    ],
)
def test_a_key_of_its_own_called_answer_is_no_envelope(keys: Any, types: Any, reply: str, expected: Any):
    question = QuestionDict(question_name="q", question_text="?", answer_keys=keys, value_types=types)
    given, _ = question.read(reply)
    assert question.accept(given) == question.accept(reply) == expected


def test_a_dict_without_types_holds_texts():
    plain = QuestionDict(**TEXT, answer_keys=["a"])
    assert answer_to(plain, '{"a": 5}') == {"a": "5"}
    loose = QuestionDict(**TEXT, answer_keys=["a"], permissive=True)
    assert answer_to(loose, '{"b": [5]}') == {"b": [5]}


@settings(max_examples=300)
@given(words, st.integers(0, 150) | st.none(), st.lists(words, max_size=2), words, st.data())
def test_an_extract_in_any_form_is_accepted_with_the_same_value(
    name: str, age: Any, tags: Any, city: str, data: st.DataObject
):
    expected = {"name": name, "age": age, "tags": tags, "at": {"city": city}}
    assert answer_to(person, data.draw(written_forms(expected))) == expected
    loose = {"name": name, "age": str(age), "tags": tags, "at": {"city": city, "more": 1}, "more": 1}
    assert answer_to(person, data.draw(written_forms(loose))) == expected


@pytest.mark.parametrize(
    "given",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": "old", "tags": [], "at": {"city": "x"}},
        {"name": "Ada", "age": 1, "tags": "x", "at": {"city": "x"}},
        {"name": "Ada", "age": 1, "tags": [], "at": "x"},
        {"name": "Ada", "age": 1, "tags": [], "at": {}},
        "Ada",
    ],
)
def test_other_extracts_are_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(person, given if isinstance(given, str) else json.dumps(given))


@settings(max_examples=200)
@given(words, st.floats(-1e6, 1e6), st.data())
def test_an_object_that_fits_the_model_is_accepted_in_any_form(name: str, price: float, data: st.DataObject):
    expected = {"name": name, "price": price}
    assert answer_to(fits_schema, data.draw(written_forms(expected))) == expected
    assert answer_to(fits_schema, json.dumps({"name": name, "price": str(price)})) == expected


@pytest.mark.parametrize(
    "given", [{"name": "w"}, {"name": "w", "price": "cheap"}, {"name": "w", "price": None}, [1], "w"]
)
def test_an_object_that_does_not_fit_the_model_is_never_accepted(given: Any):
    with pytest.raises(InvalidAnswer):
        answer_to(fits_schema, given if isinstance(given, str) else json.dumps(given))


class Widget:
    """What a class made with pydantic has for its schema; pydantic itself is not needed."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return PERSON


def test_a_pydantic_model_is_kept_as_its_schema_alone():
    question = QuestionPydantic(**TEXT, pydantic_model=Widget)
    assert question == fits_schema
    assert "Widget" not in repr(question.to_dict())


@pytest.mark.parametrize(
    "make",
    [
        lambda: QuestionMatrix(**TEXT, question_items=[], question_options=[1]),
        lambda: QuestionMatrix(**TEXT, question_items=["a", "a"], question_options=[1]),
        lambda: QuestionMatrix(**TEXT, question_items=["a"], question_options=[1], option_labels={2: "x"}),
        lambda: QuestionDict(**TEXT, answer_keys=[]),
        lambda: QuestionDict(**TEXT, answer_keys=["a"], value_types=["int", "str"]),
        lambda: QuestionDict(**TEXT, answer_keys=["a"], value_types=["date"]),
        lambda: QuestionExtract(**TEXT, answer_template={}),
        lambda: QuestionExtract(**TEXT, answer_template=["a"]),
        lambda: QuestionPydantic(**TEXT),
        lambda: QuestionPydantic(**TEXT, pydantic_model=int),
        lambda: QuestionPydantic(**TEXT, pydantic_model_schema={"type": "string"}),
        lambda: QuestionPydantic(**TEXT, pydantic_model_schema={"type": "object", "properties": 5}),
    ],
)
def test_settings_that_cannot_be_met_are_refused(make: Any):
    with pytest.raises(SurveyError):
        make()


@pytest.mark.parametrize("question", [matrix, recipe, person, fits_schema], ids=lambda question: question.kind)
def test_a_question_comes_back_from_its_settings(question: Question):
    assert question_from_dict(json.loads(json.dumps(question.to_dict()))) == question
    assert type(question).example().instructions()
    assert question.schema()["type"] == "object"


def test_items_are_shown_in_another_order_in_each_interview_but_for_those_pinned(tmp_path: Path):
    items = [f"item {number}" for number in range(6)]
    shuffled = QuestionMatrix(
        **TEXT, question_items=items, question_options=[1, 2], randomize_items=True, items_to_pin=["item 5"]
    )
    assert question_from_dict(json.loads(json.dumps(shuffled.to_dict()))) == shuffled
    people = AgentList(Agent({"n": n}) for n in range(20))
    orders: list[list[str]] = []

    def answer(request: Request) -> str:
        orders.append(re.findall("- (item .)", request.user_prompt))
        return json.dumps(dict.fromkeys(orders[-1], 1))

    job = Survey([shuffled]).by(people, Model("test", canned_response=answer))
    results = job.run(tmp_path / "a.run")
    assert all(result.answer["q"] == dict.fromkeys(items, 1) for result in results)
    first = list(orders)
    orders.clear()
    job.run(tmp_path / "b.run")
    assert orders == first
    assert len({tuple(order) for order in first}) > 10
    assert all(sorted(order) == items and order[5] == "item 5" for order in first)
