"""A survey as plain data, in one form: a run file holds it, `Survey.save` writes it, and people write it by hand.

    questions:     [{kind: yes_no, question_name: pet, question_text: "A pet?"}, ...]
    skip:          {walks: "pet == 'No'"}
    rules:         [{question: pet, expression: "pet == 'No'", next_question: wish}]      in the order they were added
    stop:          {pet: "pet == 'No'"}           short for rules that lead to EndOfSurvey, behind the other rules
    memory:        {walks: [pet]}                 or `full`, or how many questions back
    instructions:  [{name: brief, text: Be brief.}, {drop: [brief], after: pet}]
    randomize:     [pet]
    pinned:        {pet: [Other]}
    seed:          7
    groups:        {animals: [pet, walks]}        the first and the last question
    wording:       {persona: "..."}               as for Survey.set_wording

A part that is not used is left out, so that surveys of older run files keep their digest. Does not cover: short names
of a question's settings, and files (plan.survey_file).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from headrace.errors import InvalidInput, SurveyError, nearest
from headrace.survey.names import DATA_ROOTS
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.values import UnusableValue, decode_value, encode_value
from headrace.survey.wording.instruction import interleaved, to_dicts
from headrace.survey.wording.option_order import Randomizing

if TYPE_CHECKING:
    from headrace.survey.survey import Survey

PARTS = ("skip", "rules", "stop", "memory", "instructions", "randomize", "pinned", "seed", "groups", "wording")
_OF_A_RULE = ("question", "expression", "next_question", "before_rule")
_OF_WORDING = ("persona", "before_memory", "after_memory")


def stored_parts(survey: Survey) -> dict[str, Any]:
    """What a survey has beside its questions."""
    randomizing = survey.randomizing
    parts = {
        "rules": [rule.to_dict() for rule in survey.rules],
        "instructions": to_dicts(survey.instructions, survey.question_names),
        "randomize": list(randomizing.questions),
        "pinned": {name: list(options) for name, options in randomizing.pinned.items()},
        "seed": randomizing.seed,
        "wording": survey.wording.changed(),
        "memory": survey.memory,
        "groups": survey.groups,
    }
    skip = {name: rule.source for name, rule in sorted(survey.skip_rules.items())}
    return {"skip": skip} | {part: held for part, held in parts.items() if held}


def survey_to_row(survey: Survey) -> bytes:
    held = {"questions": [question.to_dict() for question in survey.questions], **stored_parts(survey)}
    if survey.resolved:
        held["names"] = dict(sorted(survey.resolved.items()))
    try:
        return encode_value(held, is_exact=True)
    except UnusableValue as error:
        raise SurveyError(f"The survey cannot be stored: {error.message}", fix=error.fix) from None


def survey_from_row(make: type[Survey], row: bytes | str, functions: Sequence[Mapping[str, Any]]) -> Survey:
    held = decode_value(row)
    questions = [
        question_from_dict(settings, functions[position] if position < len(functions) else None)
        for position, settings in enumerate(held["questions"])
    ]
    survey = survey_from_parts(make, questions, held)
    survey.resolved = {str(name): _field_of(stands_for) for name, stands_for in held.get("names", {}).items()}
    return survey


def survey_from_parts(make: type[Survey], questions: Sequence[Question], parts: Mapping[str, Any]) -> Survey:
    """A survey of these questions with the other parts; SurveyError names the part that does not fit."""
    with _reading("instructions"):
        told = interleaved(questions, _items(parts.get("instructions")))
    survey = make(told)
    _add_rules(survey, parts)
    _add_memory(survey, parts.get("memory"))
    with _reading("randomize"):
        survey.randomize(_randomizing(parts))
    for name, ends in _fields(parts.get("groups"), "groups").items():
        with _reading(f"groups, {name}"):
            first, last = (_name(each) for each in _pair(ends))
            survey.add_question_group(first, last, name)
    with _reading("wording"):
        survey.set_wording(**_known(parts.get("wording") or {}, _OF_WORDING))
    return survey


def _add_rules(survey: Survey, parts: Mapping[str, Any]) -> None:
    for name, expression in _fields(parts.get("skip"), "skip").items():
        with _reading(f"skip, {name}"):
            survey.add_skip_rule(name, str(expression))
    with _reading("rules"):
        rules = _items(parts.get("rules"))
    for number, rule in enumerate(rules, 1):
        with _reading(f"rules, {number}"):
            _add_rule(survey, _known(rule, _OF_A_RULE, needed=3))
    for name, expression in _fields(parts.get("stop"), "stop").items():
        with _reading(f"stop, {name}"):
            survey.add_stop_rule(name, str(expression))


def _add_rule(survey: Survey, given: dict[str, Any]) -> None:
    target = given["next_question"]
    if isinstance(target, bool) or not isinstance(target, (str, int)):
        raise SurveyError(f"{target!r} is no question.", fix="Give the name of a later one, or EndOfSurvey.")
    before = given.get("before_rule", False)
    survey.add_rule(_name(given["question"]), str(given["expression"]), target, before_rule=before is True)


def _add_memory(survey: Survey, memory: Any) -> None:
    with _reading("memory"):
        if memory == "full":
            survey.set_full_memory_mode()
            return
        if isinstance(memory, int):
            survey.set_lagged_memory(memory)
            return
    for name, earlier in _fields(memory, "memory").items():
        with _reading(f"memory, {name}"):
            survey.add_memory_collection(name, [_name(each) for each in _items(earlier)])


def _randomizing(parts: Mapping[str, Any]) -> Randomizing:
    names = tuple(_name(each) for each in _items(parts.get("randomize")))
    pinned = {name: _items(options) for name, options in _fields(parts.get("pinned"), "pinned").items()}
    seed = parts.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise SurveyError(f"The seed {seed!r} is no whole number.", fix="Give one, such as 7.")
    return Randomizing(names, pinned, seed)


@contextmanager
def _reading(place: str) -> Generator[None]:
    """Puts the place that is being read before what is wrong there."""
    try:
        yield
    except InvalidInput as error:
        raise SurveyError(f"{place}: {error.message}", fix=error.fix) from None


def _fields(held: Any, part: str) -> dict[str, Any]:
    if held is None:
        return {}
    if not isinstance(held, dict):
        raise SurveyError(f"{part} is not a set of `name: value` lines.", fix="Write one `question: value` a line.")
    return {str(name): value for name, value in cast("dict[Any, Any]", held).items()}


def _items(held: Any) -> list[Any]:
    if held is None:
        return []
    if not isinstance(held, (list, tuple)):
        raise SurveyError(f"{held!r} is no list.", fix="Write it in square brackets, or one `- item` a line.")
    return list(cast("list[Any]", held))


def _pair(held: Any) -> list[Any]:
    if len(items := _items(held)) != 2:
        raise SurveyError(f"{held!r} are not two questions.", fix="Name the first and the last one.")
    return items


def _name(held: Any) -> str:
    if not isinstance(held, str):
        raise SurveyError(f"{held!r} is no question's name.", fix="Write the question_name.")
    return held


def _known(held: Any, names: Sequence[str], needed: int = 0) -> dict[str, Any]:
    """The settings of one item, where each is one of `names` and the first `needed` of them are there."""
    if not isinstance(held, dict):
        raise SurveyError(f"{held!r} is not a set of settings.", fix=f"Write {', '.join(names)}.")
    given = cast("dict[str, Any]", held)
    for name in given:
        if name not in names:
            raise SurveyError(f"There is no setting {name!r}.", fix=nearest(str(name), names))
    if missing := [name for name in names[:needed] if name not in given]:
        raise SurveyError(f"{missing[0]!r} is missing.", fix=f"Write {', '.join(names[:needed])}.")
    return given


def _field_of(stands_for: Any) -> str:
    """What a bare name stands for: a field of the agent or the scenario, whatever a file says."""
    group, _, field = str(stands_for).partition(".")
    if group not in DATA_ROOTS or not field:
        raise ValueError(f"a bare name stands for {stands_for!r}")
    return str(stands_for)
