"""Whatever a model sends, a question accepts an answer that follows its schema, or refuses it with a reason."""

import json
from contextlib import suppress
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import (
    QuestionBudget,
    QuestionDemand,
    QuestionDict,
    QuestionExtract,
    QuestionList,
    QuestionMatrix,
    QuestionNumerical,
    QuestionPydantic,
)
from headrace.errors import InvalidAnswer
from headrace.survey.questions import Question
from headrace.survey.replies import NoAnswer
from headrace.survey.values import decode_value, encode_value
from tests.survey.questions.written_forms import answer_to, written_forms

TEXT = {"question_name": "q", "question_text": "Which?"}
AS_ITS_SCHEMA: list[Question] = [
    QuestionNumerical(**TEXT, min_value=1, max_value=5),
    QuestionMatrix(**TEXT, question_items=["a", "b"], question_options=[1, 2, "c"]),
    QuestionDict(**TEXT, answer_keys=["a", "b"], value_types=["int", "list[str]"]),
    QuestionExtract(**TEXT, answer_template={"a": 1.5, "b": {"c": "x"}}),
    QuestionPydantic(
        **TEXT,
        pydantic_model_schema={
            "type": "object",
            "properties": {"a": {"type": "integer", "minimum": 2}, "b": {"enum": [1, "c"]}},
            "required": ["a"],
        },
    ),
]
OTHERS: list[Question] = [
    QuestionList(**TEXT, min_list_items=1, max_list_items=2),
    QuestionBudget(**TEXT, question_options=["a", "b"], budget_sum=4),
    QuestionDemand(**TEXT, prices=[1, 2]),
]

keys = st.sampled_from(["a", "b", "c", "0", "1", "A", "answer", "comment", "$1.00"])
scalars = st.sampled_from([None, True, False, 0, 1, 2, 3, 7, -1, 1.5, 2.0, 1e400, "1", "2", "c", "C", "null", "x", ""])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
texts = st.text(st.sampled_from("[]{}\"':,.- \n`12abcTrueNone$"), max_size=40)


@pytest.mark.parametrize("question", [*AS_ITS_SCHEMA, *OTHERS], ids=lambda question: question.kind)
@settings(max_examples=400)
@given(st.data())
def test_a_reply_is_accepted_as_its_schema_says_or_refused(question: Question, data: st.DataObject):
    value = data.draw(values)
    text = data.draw(texts | written_forms(value) | st.just(json.dumps(value)))
    with suppress(InvalidAnswer, NoAnswer):
        answer: Any = answer_to(question, text)
        assert decode_value(encode_value(answer)) == answer
        if question in AS_ITS_SCHEMA:
            jsonschema_rs.validate(question.schema(), answer)
        else:
            assert len(answer) in (1, 2)
    with suppress(InvalidAnswer):
        question.accept(value)
