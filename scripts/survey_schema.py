"""Writes docs/survey.schema.json: the JSON schema of a survey file, by which editors check and complete it.

    .venv/bin/python scripts/survey_schema.py

It is made from the kinds of question themselves; tests/docs/test_survey_schema.py fails where the file is older.
Does not cover: reading a survey file, which says more about what is wrong (plan.survey_file).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from headrace.plan.survey_file import names_of, settings_in_files, written_kinds
from headrace.survey.questions.base import Question

COPY = Path(__file__).parents[1] / "docs" / "survey.schema.json"
_LIST: dict[str, Any] = {"oneOf": [{"type": "array", "minItems": 1}, {"type": "string", "pattern": "\\{\\{"}]}
_VALUES: dict[str, dict[str, Any]] = {
    "question_name": {"type": "string", "pattern": "^[^\\W\\d]\\w*$", "description": "Names the answer's column."},
    "question_text": {"type": "string", "minLength": 1, "description": "May name {{ scenario.x }} and {{ agent.x }}."},
    "answering_instructions": {"type": ["string", "null"], "description": "How to answer, in place of our words."},
    "question_presentation": {
        "type": ["string", "null"],
        "description": "The question's text with its options, in place of ours; may name {{ question_text }}.",
    },
    "include_comment": {"type": "boolean", "description": "Whether the model may say why."},
    "model": {
        "type": ["string", "object", "null"],
        "description": "Answers this question in place of the job's models.",
    },
    "question_options": {
        "description": "What to choose from, or one template that names a list: {{ scenario.brands }}.",
        "oneOf": [{"type": "array", "minItems": 2}, {"type": "string", "pattern": "\\{\\{"}],
    },
    "min_value": {"type": ["number", "string", "null"], "description": "A number, or a template that gives one."},
    "max_value": {"type": ["number", "string", "null"], "description": "A number, or a template that gives one."},
    "min_list_items": {"type": ["integer", "string", "null"]},
    "max_list_items": {"type": ["integer", "string", "null"]},
    "permissive": {"type": "boolean", "description": "Accept answers outside the bounds or options too."},
    "budget_sum": {"type": ["number", "string"], "description": "What the numbers of an answer add up to."},
    "remainder_option": {"type": ["string", "null"], "description": "The option that gets what is left of the budget."},
    "min_selections": {"type": ["integer", "string", "null"], "description": "How few options may be chosen."},
    "max_selections": {"type": ["integer", "string", "null"], "description": "How many options may be chosen."},
    "num_selections": {"type": ["integer", "string", "null"], "description": "How many options to rank; all of them."},
    "use_code": {"type": "boolean", "description": "Answer with an option's number, counted from 0."},
    "other_option_text": {
        "type": "string",
        "minLength": 1,
        "description": "What comes before an answer of one's own.",
    },
    "question_options_details": {**_LIST, "description": "Further words to find each option by."},
    "sample_indices": {"type": ["array", "null"], "items": {"type": "integer"}, "description": "The options to show."},
    "max_options_shown": {"type": "integer", "description": "How many options to show of a long list."},
    "top_k": {"type": "integer", "description": "As in EDSL; it changes nothing here."},
    "prices": _LIST,
    "question_items": _LIST,
    "randomize_items": {"type": "boolean", "description": "Show the items in another order in each interview."},
    "items_to_pin": {"type": "array", "description": "Items that keep their place."},
    "answer_keys": _LIST,
    "value_types": {**_LIST, "description": "A type for each key: str, int, float, bool, list, dict, list[str], ..."},
    "value_descriptions": _LIST,
    "answer_template": {"type": "object", "minProperties": 1, "description": "An example of the answer."},
    "pydantic_model_schema": {"type": "object", "description": "The JSON schema of the answer, an object."},
    "option_labels": {"type": "object", "additionalProperties": {"type": "string"}},
}


_NAMES: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_AFTER = {"type": "string", "description": "The question that it stands after; without it, before the first."}
_RULE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "question": {"type": "string"},
        "expression": {"type": "string"},
        "next_question": {"type": ["string", "integer"], "description": "A later question, or EndOfSurvey."},
        "before_rule": {"type": "boolean", "description": "Look at the rule before the question, not after it."},
    },
    "required": ["question", "expression", "next_question"],
    "additionalProperties": False,
}
_INSTRUCTION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "text": {"type": "string", "minLength": 1},
        "preamble": {"type": "string"},
        "after": _AFTER,
    },
    "required": ["name", "text"],
    "additionalProperties": False,
}
_CHANGE: dict[str, Any] = {
    "type": "object",
    "properties": {"drop": _NAMES, "keep": _NAMES, "after": _AFTER},
    "anyOf": [{"required": ["drop"]}, {"required": ["keep"]}],
    "additionalProperties": False,
}


def survey_schema() -> dict[str, Any]:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A Headrace survey",
        "type": "object",
        "properties": {
            "$schema": {"type": "string"},
            "questions": {"type": "array", "minItems": 1, "items": {"oneOf": list(map(_question, written_kinds()))}},
            "skip": {
                "description": "When to skip a question: one `question: rule` each.",
                "type": ["object", "null"],
                "additionalProperties": {"type": "string"},
            },
            "rules": {
                "type": "array",
                "description": "Where an interview goes on after a question; the last one that holds decides.",
                "items": _RULE,
            },
            "stop": {
                "description": "When to end the survey after a question: one `question: rule` each.",
                "type": ["object", "null"],
                "additionalProperties": {"type": "string"},
            },
            "memory": {
                "description": "The earlier questions that each question remembers; `full`, or how many back.",
                "oneOf": [
                    {"type": "object", "additionalProperties": _NAMES},
                    {"const": "full"},
                    {"type": "integer", "minimum": 0},
                ],
            },
            "instructions": {"type": "array", "items": {"oneOf": [_INSTRUCTION, _CHANGE]}},
            "randomize": {**_NAMES, "description": "The questions whose options are shown in random order."},
            "pinned": {
                "type": "object",
                "description": "Options that keep their place.",
                "additionalProperties": {"type": "array"},
            },
            "seed": {"type": "integer", "description": "What the random orders follow from."},
            "groups": {
                "type": "object",
                "description": "The first and the last question of each group.",
                "additionalProperties": {**_NAMES, "minItems": 2, "maxItems": 2},
            },
            "wording": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("persona", "before_memory", "after_memory")},
                "additionalProperties": False,
            },
            "agents": {"type": ["string", "array", "object"], "description": "A .csv or .jsonl file, or a list."},
            "scenarios": {"type": ["string", "array", "object"], "description": "A .csv or .jsonl file, or a list."},
            "models": {"type": ["string", "array"], "description": "Each as gpt-4o,temperature=0.2 or an object."},
            "where": {"type": ["string", "array"], "description": "Only combinations for which these hold."},
        },
        "required": ["questions"],
        "additionalProperties": False,
    }


def _question(kind: type[Question]) -> dict[str, Any]:
    fields = settings_in_files(kind)
    needed = [field.name for field in fields if _is_required(field)]
    properties: dict[str, Any] = {"kind": {"const": kind.kind}}
    for field in fields:
        properties |= dict.fromkeys(names_of(field.name), _VALUES[field.name])
    return {
        "title": kind.kind,
        "type": "object",
        "properties": properties,
        "required": ["kind"],
        "allOf": [{"oneOf": [{"required": [name]} for name in names_of(field)]} for field in needed],
        "additionalProperties": False,
    }


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


if __name__ == "__main__":
    COPY.write_text(json.dumps(survey_schema(), indent=2) + "\n", "utf-8")
