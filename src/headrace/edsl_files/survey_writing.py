"""A survey in the form that EDSL 1.0.9 reads: questions with its settings, rules with its numbers and priorities.

Every question gets the rule that leads on, as EDSL has it. What EDSL would refuse to load is written in another way,
and noted: a kind that it does not have becomes free text, a rule that names the agent or the scenario is left out.
Does not cover: results (results_writing).
"""

from __future__ import annotations

import ast
import re
from typing import Any, cast

import msgspec

from headrace.edsl_files.carried_over import KNOWN_VERSION, CarriedOver
from headrace.edsl_files.taken_settings import fits_labels, refused_name, refused_settings
from headrace.errors import InvalidInput
from headrace.expressions import Expression
from headrace.survey.flow.rules import Rule
from headrace.survey.questions import Question
from headrace.survey.survey import Survey
from headrace.survey.wording.instruction import ChangeInstruction, Instruction

VERSION = ".".join(map(str, KNOWN_VERSION))
_NOT_THERE = frozenset({"map", "functional"})
# Settings of ours that EDSL's classes do not take.
_NOT_TAKEN: dict[str, frozenset[str]] = {
    "top_k": frozenset({"permissive"}),
    "extract": frozenset({"include_comment"}),
    "pydantic": frozenset({"include_comment", "pydantic_model"}),
    "random": frozenset({"question_options"}),
}
_LEADS_ON = -1
_BRACES = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_AS_TEXT = ("'{{", '"{{')  # the value as text, which EDSL reads otherwise


def marks(name: str) -> dict[str, str]:
    """The keys by which EDSL knows what a dict is."""
    return {"edsl_version": VERSION, "edsl_class_name": name}


def survey_as_edsl(survey: Survey, notes: CarriedOver) -> dict[str, Any]:
    """The survey as EDSL's `to_dict()` would give it."""
    names = survey.question_names
    written: dict[str, Any] = {
        "questions": _asked(survey, notes),
        "memory_plan": {
            "survey_question_names": names,
            "survey_question_texts": [question.question_text for question in survey],
            "data": {name: {"prior_questions": list(earlier)} for name, earlier in survey.memory.items()},
        },
        "rule_collection": {
            "question_name_to_index": survey.positions,
            "rules": _rules(survey, notes),
            "num_questions": len(survey),
        },
        "question_groups": {name: list(span) for name, span in survey.question_groups.items()},
    }
    randomizing = survey.randomizing
    if randomizing.questions:
        written["questions_to_randomize"] = list(randomizing.questions)
    if randomizing.pinned:
        written["options_to_pin"] = {name: list(options) for name, options in randomizing.pinned.items()}
    return {**written, **({"name": survey.name} if survey.name else {}), **marks("Survey")}


def question_kind(question: Question) -> str:
    """The kind that EDSL has for it: free text where it has none, or would refuse it."""
    return "free_text" if question.kind in _NOT_THERE or _refused(question) else question.kind


def _asked(survey: Survey, notes: CarriedOver) -> list[dict[str, Any]]:
    instructions = list(survey.instructions)
    written: list[dict[str, Any]] = []
    for place, question in enumerate([*survey.questions, None]):
        while instructions and instructions[0][0] <= place:
            written.append(_instruction(instructions.pop(0)[1]))
        if question is not None:
            written.append(_question(question, notes))
    return written


def _instruction(given: Instruction | ChangeInstruction) -> dict[str, Any]:
    if isinstance(given, ChangeInstruction):
        return {**given.to_dict(), **marks("ChangeInstruction")}
    return {"name": given.name, "text": given.text, "preamble": given.preamble, **marks("Instruction")}


def _question(question: Question, notes: CarriedOver) -> dict[str, Any]:
    name, kind = question.question_name, question_kind(question)
    if refused_name(name):
        raise InvalidInput(f"EDSL takes no question called {name!r}.", fix="Leave it out, or rename it in the survey.")
    head = {"question_name": name, "question_text": question.question_text}
    if question.model is not None:
        notes.note(f"question {name!r}: a model of its own")
    if kind != question.kind:
        why = _refused(question) or "its kind is not there"
        notes.note(f"question {name!r} is of the kind {question.kind!r}, and free text for EDSL: {why}")
        return {**head, "question_type": kind, **marks("QuestionBase")}
    kept = _settings(question)
    labels = kept.pop("option_labels", None)
    if fits_labels(labels, kept.get("question_options")):
        kept["option_labels"] = labels
    elif labels:
        notes.note(f"question {name!r}: labels of its options, which EDSL wants for the first and last one at least")
    return {**head, **kept, "question_type": kind, **marks("QuestionBase")}


def _settings(question: Question) -> dict[str, Any]:
    hidden = _NOT_TAKEN.get(question.kind, frozenset()) | {"model", "kind"}
    plain = msgspec.to_builtins({each: value for each, value in question.to_dict().items() if each not in hidden})
    return cast("dict[str, Any]", plain)


def _refused(question: Question) -> str | None:
    return None if question.kind in _NOT_THERE else refused_settings(question.kind, _settings(question))


def _rules(survey: Survey, notes: CarriedOver) -> list[dict[str, Any]]:
    written = [_rule(place, "True", place + 1, _LEADS_ON, is_before=False) for place in range(len(survey))]
    for name, expression in survey.skip_rules.items():
        place = survey.positions[name]
        if (words := _in_its_words(expression, survey, name, notes)) is not None:
            written.append(_rule(place, words, place + 1, 0, is_before=True))
    for priority, rule in enumerate(survey.rules):
        if (words := _in_its_words(rule.expression, survey, rule.question, notes)) is not None:
            target = _target(rule, survey)
            written.append(_rule(survey.positions[rule.question], words, target, priority, is_before=rule.is_before))
    return written


def _target(rule: Rule, survey: Survey) -> int | str:
    return "EndOfSurvey" if rule.next_question is None else survey.positions[rule.next_question]


def _rule(place: int, expression: str, target: int | str, priority: int, *, is_before: bool) -> dict[str, Any]:
    return {
        "current_q": place,
        "expression": expression,
        "next_q": target,
        "priority": priority,
        "before_rule": is_before,
        "question_name_to_index": {},
    }


def _in_its_words(expression: Expression, survey: Survey, question: str, notes: CarriedOver) -> str | None:
    """The expression with every answer as `{{ mood.answer }}`; None where it says what EDSL's rules do not know."""
    written = _braced(" ".join(expression.source.split()), survey)
    if written is None:
        notes.note(f"a rule of question {question!r}: {expression.source[:120]}")
    return written


def _braced(source: str, survey: Survey) -> str | None:
    if any(mark in source for mark in _AS_TEXT):
        return None
    plain = _BRACES.sub(r"\1", source)
    try:
        nodes = list(ast.walk(ast.parse(plain, mode="eval")))
    except SyntaxError:
        return None
    named = [node for node in nodes if isinstance(node, (ast.Name, ast.Attribute))]
    inner = {id(node.value) for node in named if isinstance(node, ast.Attribute)}
    text = plain.encode()  # by whose bytes Python says where a name stands
    for node in sorted((node for node in named if id(node) not in inner), key=lambda node: -node.col_offset):
        if (name := _answer_of(node)) not in survey.positions or node.end_col_offset is None:
            return None
        text = text[: node.col_offset] + f"{{{{ {name}.answer }}}}".encode() + text[node.end_col_offset :]
    return text.decode()


def _answer_of(node: ast.Name | ast.Attribute) -> str:
    """The question whose answer a name stands for, alone or with `.answer`; "" for none."""
    if isinstance(node, ast.Name):
        return node.id
    return node.value.id if node.attr == "answer" and isinstance(node.value, ast.Name) else ""
