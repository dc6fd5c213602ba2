"""Surveys of EDSL's: questions, rules, memory, instructions, groups and the order of options.

EDSL numbers questions, and gives every rule a priority: -1 for the rule that leads on, and otherwise the highest that
holds decides, of equal ones the first. Here the rule that was added last decides. A rule that is looked at before its
question and leads to the next one is a skip rule. Does not cover: the settings of a question (question_reading).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.edsl_files.carried_over import CarriedOver, as_edsl_errors
from headrace.edsl_files.given_data import EdslData, refuse_other_class
from headrace.edsl_files.question_reading import Unsupported, question_of, refuse_unsupported
from headrace.errors import EdslFileError
from headrace.survey.flow.rules import EndOfSurvey
from headrace.survey.questions import Question
from headrace.survey.survey import Survey
from headrace.survey.wording.instruction import ChangeInstruction, Instruction
from headrace.survey.wording.option_order import Randomizing

_PARTS = frozenset({"questions", "memory_plan", "rule_collection", "question_groups", "name", "questions_to_randomize"})
_NOT_CARRIED = {"css": "the survey's style sheet (css)"}
_OF_A_RULE = frozenset({"current_q", "expression", "next_q", "priority", "before_rule", "question_name_to_index"})
_LEADS_ON = -1
_END = "EndOfSurvey"


def survey_of(data: EdslData) -> Survey:
    """The survey, or the one question, that was given."""
    held: dict[str, Any] = {}
    for name, value in data.members():
        if name != "edsl_class_name" or value not in ("QuestionDict", "QuestionFunctional"):
            refuse_other_class(data, ("Survey", "QuestionBase"), name, value)
        held[name] = value
    if "question_type" in held:
        held = {"questions": [held]}
    return survey_in(held, data.notes)


def survey_in(held: Mapping[str, Any], notes: CarriedOver, *, unsupported: Unsupported = refuse_unsupported) -> Survey:
    """The survey that a dict of EDSL's describes; `unsupported` says what stands for a question that cannot be asked
    here.
    """
    _note_unknown(held, notes)
    with as_edsl_errors(notes):
        survey = Survey(_asked(_items(held.get("questions"), "questions", notes), notes, unsupported))
        survey.name = held.get("name") if isinstance(held.get("name"), str) else None
        _add_rules(survey, _fields(held.get("rule_collection"), "rule_collection", notes), notes)
        _add_memory(survey, _fields(held.get("memory_plan"), "memory_plan", notes), notes)
        for name, (first, last) in _fields(held.get("question_groups"), "question_groups", notes).items():
            survey.add_question_group(_named(survey, first), _named(survey, last), name)
        shuffled = tuple(_items(held.get("questions_to_randomize") or [], "questions_to_randomize", notes))
        pinned = _fields(held.get("options_to_pin"), "options_to_pin", notes)
        survey.randomize(Randomizing(shuffled, pinned, 0))
    return survey


def _note_unknown(held: Mapping[str, Any], notes: CarriedOver) -> None:
    for name, value in held.items():
        if name in _PARTS or name in ("edsl_version", "edsl_class_name", "options_to_pin") or not value:
            continue
        notes.note(_NOT_CARRIED.get(name, f"the survey's part {name[:60]!r}"))


def _asked(
    items: Iterable[Any], notes: CarriedOver, unsupported: Unsupported
) -> list[Question | Instruction | ChangeInstruction]:
    """Questions and instructions in their order; as many as a person writes."""
    made: list[Question | Instruction | ChangeInstruction] = []
    for item in items:
        settings = {name: value for name, value in item.items() if not name.startswith("edsl_")}
        if item.get("edsl_class_name") == "Instruction" or ("question_type" not in settings and "text" in settings):
            made.append(_instruction(settings, notes))
        elif settings.keys() <= {"keep", "drop"}:
            made.append(ChangeInstruction(settings.get("keep") or (), settings.get("drop") or ()))
        else:
            made.append(question_of(settings, notes, unsupported))
    return made


def _instruction(settings: Mapping[str, Any], notes: CarriedOver) -> Instruction:
    for name in settings.keys() - {"name", "text", "preamble"}:
        notes.note(f"the setting {name[:60]!r} of the instruction {str(settings.get('name'))[:60]!r}")
    kept = {name: settings[name] for name in ("name", "text", "preamble") if settings.get(name) is not None}
    return Instruction(**kept)


def _add_rules(survey: Survey, collection: Mapping[str, Any], notes: CarriedOver) -> None:
    rules = [
        _NumberedRule(survey, held, number, notes) for number, held in enumerate(collection.get("rules") or [])
    ]  # as many as a person writes, and one a question
    for rule in sorted(rules, key=lambda rule: (rule.place, rule.priority, -rule.number)):
        rule.add()
    if rules and len(collection.get("question_name_to_index") or survey) != len(survey):
        raise EdslFileError(f"{notes.place}: its rules are those of another survey.", fix="Save it again in EDSL.")


class _NumberedRule:
    """A rule of EDSL's, in the words of the survey that it is to be added to."""

    def __init__(self, survey: Survey, held: Mapping[str, Any], number: int, notes: CarriedOver) -> None:
        unknown = sorted(held.keys() - _OF_A_RULE)
        if unknown:
            raise EdslFileError(
                f"{notes.place}: a rule has {unknown[0][:60]!r}, which may change what it means.",
                fix="Save the survey with EDSL 1.0.9, or write its rules in the program.",
            )
        self.number, self.priority = number, int(held["priority"])
        self._survey, self._expression = survey, str(held["expression"])
        self.place, self._target = int(held["current_q"]), held["next_q"]
        self._is_before = bool(held.get("before_rule", False))

    def add(self) -> None:
        leads_on = self._target == self.place + 1
        if self.priority <= _LEADS_ON and leads_on and self._expression == "True":
            return  # what happens anyway
        question = _named(self._survey, self.place)
        if self._is_before and leads_on:
            self._survey.add_skip_rule(question, self._expression)
        elif self._target == _END:
            self._survey.add_rule(question, self._expression, EndOfSurvey, self._is_before)
        else:
            self._survey.add_rule(question, self._expression, int(self._target), self._is_before)


def _add_memory(survey: Survey, plan: Mapping[str, Any], notes: CarriedOver) -> None:
    for question, held in _fields(plan.get("data"), "memory_plan", notes).items():
        earlier: Any = held["prior_questions"]
        survey.add_memory_collection(question, earlier)


def _named(survey: Survey, place: int) -> str:
    """The name of the question with a number of EDSL's."""
    if not 0 <= place < len(survey):
        raise EdslFileError(f"There is no question number {place}.", fix="Save the survey again in EDSL.")
    return survey.questions[place].question_name


def _fields(held: Any, part: str, notes: CarriedOver) -> Mapping[str, Any]:
    if held is not None and not isinstance(held, Mapping):
        raise EdslFileError(f"{notes.place}: its {part} is no JSON object.", fix="Save it again in EDSL.")
    return cast("Mapping[str, Any]", held or {})


def _items(held: Any, part: str, notes: CarriedOver) -> list[Any]:
    if not isinstance(held, (list, tuple)) and not hasattr(held, "__next__"):
        raise EdslFileError(f"{notes.place} has no list of {part}.", fix="Give what EDSL's to_dict() or save() wrote.")
    return list(cast("Iterable[Any]", held))
