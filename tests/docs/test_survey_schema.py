import json
from typing import Any

import jsonschema_rs
import pytest

from scripts.survey_schema import COPY, survey_schema

MOOD = {"kind": "multiple_choice", "name": "mood", "text": "Well?", "options": ["Good", "Bad"]}


def test_the_copy_for_editors_is_current():
    assert json.loads(COPY.read_text("utf-8")) == survey_schema()


@pytest.mark.parametrize(
    "survey",
    [
        {"questions": [MOOD], "skip": {"mood": "agent.age < 30"}},
        {"questions": [{"kind": "numerical", "question_name": "n", "question_text": "?", "min": 0, "max_value": 1}]},
        {"questions": [{"kind": "linear_scale", "name": "s", "text": "?", "options": [1, 2], "labels": {"1": "low"}}]},
        {"questions": [{"kind": "free_text", "name": "f", "text": "?"}, {"kind": "yes_no", "name": "y", "text": "?"}]},
        {"questions": [{**MOOD, "options": "{{ scenario.brands }}"}]},
        {"questions": [{"kind": "list", "name": "l", "text": "?", "min": 1, "max": 3}]},
        {"questions": [{"kind": "matrix", "name": "m", "text": "?", "items": ["a"], "options": [1, 2]}]},
        {"questions": [{"kind": "extract", "name": "e", "text": "?", "template": {"a": 1}}]},
        {"questions": [MOOD], "rules": [{"question": "mood", "expression": "1", "next_question": "EndOfSurvey"}]},
        {"questions": [MOOD], "stop": {"mood": "1"}, "memory": "full", "randomize": ["mood"], "seed": 7},
        {"questions": [MOOD], "instructions": [{"name": "a", "text": "b"}, {"drop": ["a"], "after": "mood"}]},
    ],
)
def test_it_takes_what_the_command_takes(survey: Any):
    assert jsonschema_rs.is_valid(survey_schema(), survey)


@pytest.mark.parametrize(
    "survey",
    [
        {},
        {"questions": []},
        {"questions": [MOOD], "skips": {}},
        {"questions": [MOOD], "rules": [["mood", "1", None, False]]},
        {"questions": [MOOD], "memory": "all"},
        {"questions": [MOOD], "instructions": [{"name": "a"}]},
        {"questions": [{**MOOD, "kind": "multiple"}]},
        {"questions": [{**MOOD, "question_name": "mood"}]},
        {"questions": [{**MOOD, "opttions": []}]},
        {"questions": [{"kind": "free_text", "name": "f"}]},
        {"questions": [{"kind": "map", "name": "f", "text": "{{ x }}"}]},
    ],
)
def test_it_refuses_what_the_command_refuses(survey: Any):
    assert not jsonschema_rs.is_valid(survey_schema(), survey)
