"""The names that a survey's texts and rules use, and whether each stands for something that is asked before it.

Covers: what no list can make right. Does not cover: bare names and fields, which need the lists (plan.fitting), or what
a name stands for in one interview (survey.names).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headrace.errors import SurveyError, nearest
from headrace.survey.flow.rules import Rule, check_forward
from headrace.survey.names import DATA_ROOTS, QUESTION_PARTS, NameUse
from headrace.survey.questions.base import OWN_WORDS
from headrace.survey.templates import Template
from headrace.survey.wording.instruction import in_words

if TYPE_CHECKING:
    from headrace.expressions import Expression
    from headrace.survey.questions import Question
    from headrace.survey.survey import Survey

_AS_ASKED = ("question_text", "question_options")


def names_in(survey: Survey, question: Question) -> Iterator[tuple[str, str]]:
    """Each name that a question's texts and the instructions before it use, with the place it stands in."""
    instructions = Template(in_words(survey.told_to(question)), "An instruction")
    yield from (("an instruction", name) for name in sorted(instructions.names))
    for place, text in question.templates():
        where = "The prompt" if question.names_row else f"Question {question.question_name!r}, {place}"
        own = question.settings() if place in OWN_WORDS else ()
        names = sorted(name for name in Template(text, where).names if name.partition(".")[0] not in own)
        yield from ((place, f"scenario.{name}" if question.names_row else name) for name in names)


def name_uses(survey: Survey) -> Iterator[NameUse]:
    """Each name that a text or a rule uses."""
    for question in survey.questions:
        yield from _text_uses(survey, question)
        name = question.question_name
        if name in survey.skip_rules:
            yield from _skip_uses(name, survey.skip_rules[name])
        for rule in survey.rules:
            if rule.question == name:
                yield from _rule_uses(rule)


def answers_named_by(survey: Survey, question: Question) -> frozenset[int]:
    """The positions of the earlier questions whose answer or comment this one's settings name."""
    return survey.positions_in(use.name for use in _text_uses(survey, question) if use.part not in _AS_ASKED)


def shown_by(survey: Survey, question: Question) -> frozenset[int]:
    """The positions of the earlier questions whose text or options this one shows in its own."""
    return survey.positions_in(use.name for use in _text_uses(survey, question) if use.part in _AS_ASKED)


def check_names(survey: Survey) -> None:
    """Refuse a survey where a text or a rule names what is not asked before it."""
    for position, question in enumerate(survey.questions):
        for use in _text_uses(survey, question):
            _check(survey, use, position)
    for name, skip in survey.skip_rules.items():
        check_skip_rule(survey, name, skip)
    for rule in survey.rules:
        check_rule(survey, rule)


def check_skip_rule(survey: Survey, question: str, skip: Expression) -> None:
    before = survey.position(question)
    for use in _skip_uses(question, skip):
        _check(survey, use, before)


def check_rule(survey: Survey, rule: Rule) -> None:
    """Refuse a rule that names what is not decided when the rule is looked at, or that does not lead forward."""
    before = survey.position(rule.question) + (not rule.is_before)
    for use in _rule_uses(rule):
        _check(survey, use, before)
    if rule.next_question is not None:
        survey.position(rule.next_question)
    check_forward(rule, survey.positions)


def _text_uses(survey: Survey, question: Question) -> Iterator[NameUse]:
    for place, name in names_in(survey, question):
        yield NameUse(f"Question {question.question_name!r}, {place}", name)


def _skip_uses(question: str, skip: Expression) -> Iterator[NameUse]:
    for name in sorted(skip.names):
        yield NameUse(f"Question {question!r}, its skip rule", name, is_in_rule=True)


def _rule_uses(rule: Rule) -> Iterator[NameUse]:
    for name in sorted(rule.expression.names):
        yield NameUse(rule.place, name, is_in_rule=True)


def _check(survey: Survey, use: NameUse, before: int) -> None:
    """Refuse a name that is no part of a question before position `before`. Bare names wait for the lists."""
    if use.root in DATA_ROOTS:
        return
    if use.root not in survey.positions:
        if use.part in QUESTION_PARTS:
            fix = nearest(use.root, survey.positions)
            raise SurveyError(f"{use.where}: there is no question {use.root!r}.", fix=fix)
        return
    _check_part(use)
    if survey.positions[use.root] >= before:
        raise SurveyError(f"{use.where}: {use.root!r} is not asked before it.", fix="Put it earlier in the survey.")


def _check_part(use: NameUse) -> None:
    """Refuse a question's name alone in a text, and parts that no question has."""
    if not use.part and not use.is_in_rule:
        raise SurveyError(
            f"{use.where}: {use.root!r} is a question, and its text, options, answer and comment have names.",
            fix=f"Write {{{{ {use.root}.answer }}}}; for a field of that name {{{{ agent.{use.root} }}}} or "
            f"{{{{ scenario.{use.root} }}}}.",
        )
    if use.part and use.part not in QUESTION_PARTS:
        spellings = ", ".join(f"{use.root}.{part}" for part in QUESTION_PARTS)
        raise SurveyError(f"{use.where}: {use.name!r} is not known.", fix=f"Write one of {spellings}.")
