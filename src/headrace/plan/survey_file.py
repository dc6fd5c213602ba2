"""A survey written in a file: YAML or JSON. Covers: reading it, and saying what in it is wrong and where.

    questions:
      - kind: multiple_choice
        name: mood
        text: How do you feel about {{ scenario.city }}?
        options: [Good, Bad]
    skip:
      rating: "{{ mood.answer }} == 'Bad'"

A question's settings are those of its class; `name`, `text`, `options`, `min`, `max` and the like are short for
`question_name` and so on. Does not cover: what the settings mean (survey.questions), and the parts beside the questions
(survey.stored_survey).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, cast

import msgspec

from headrace.errors import HeadraceError, SurveyError, nearest
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.questions.base import kinds_for_files
from headrace.survey.stored_survey import PARTS, survey_from_parts
from headrace.survey.survey import Survey
from headrace.survey.written_files import read_written

SURVEY_PARTS = ("questions", *PARTS, "$schema")
# A short name stands for the setting that its kind has.
_SHORT_FOR = {
    "name": ("question_name",),
    "text": ("question_text",),
    "options": ("question_options",),
    "items": ("question_items",),
    "min": ("min_value", "min_list_items", "min_selections"),
    "max": ("max_value", "max_list_items", "max_selections"),
    "labels": ("option_labels",),
    "budget": ("budget_sum",),
    "keys": ("answer_keys",),
    "types": ("value_types",),
    "descriptions": ("value_descriptions",),
    "template": ("answer_template",),
    "schema": ("pydantic_model_schema",),
}


def names_of(setting: str) -> list[str]:
    """What a setting may be called: in short, where there is a short name, and in full."""
    return [*(short for short, full in _SHORT_FOR.items() if setting in full), setting]


def written_kinds() -> list[type[Question]]:
    """The kinds that a file can hold: not those that need a function."""
    return [kind for kind in kinds_for_files() if not _needs_program(kind)]


def _needs_program(kind: type[Question]) -> bool:
    fields = (field for field in dataclasses.fields(kind) if not field.metadata.get("in_files", True))
    return any(field.default is dataclasses.MISSING for field in fields)


def settings_in_files(kind: type[Question]) -> list[dataclasses.Field[Any]]:
    """The settings of a kind that a file can hold: no functions and no classes."""
    return [field for field in dataclasses.fields(kind) if field.metadata.get("in_files", True)]


def survey_in(path: Path | str, held: dict[Any, Any]) -> Survey:
    """The survey that a file holds; `path` is the place that errors name."""
    for part in held:
        if part not in SURVEY_PARTS:
            raise SurveyError(f"{path} has a part {part!r}.", fix=nearest(str(part), SURVEY_PARTS))
    questions = held.get("questions")
    if not isinstance(questions, list):
        raise SurveyError(f"{path} has no list of questions.", fix='Begin with "questions:" and a list of them.')
    made = [_question(path, number, item) for number, item in enumerate(cast("list[Any]", questions), 1)]
    try:
        return survey_from_parts(Survey, made, held)
    except SurveyError as error:
        raise SurveyError(f"{path}, {error.message}", fix=error.fix) from None


def read_data(path: Path) -> Any:
    """The plain data in a `.yaml`, `.yml` or `.json` file; SurveyError where the file holds neither."""
    text = read_written(path)
    if path.name.lower().endswith((".json", ".json.gz")):
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
            raise SurveyError(f"{path} is not valid JSON: {reason}.") from None
    return _read_yaml(path, text)


def _read_yaml(path: Path, text: str) -> Any:
    import yaml

    from headrace.plan.yaml_text import read_yaml

    try:
        return read_yaml(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        fix = _yaml_fix("".join(text.splitlines()[line - 1 : line]))
        raise SurveyError(f"{path}, line {line}: {error.problem or 'not valid YAML'}.", fix=fix) from None
    except (yaml.YAMLError, ValueError) as error:
        raise SurveyError(f"{path} is not valid YAML: {str(error).splitlines()[0]}.", fix="Mend the file.") from None


def _yaml_fix(line: str) -> str:
    """What is most likely wrong with a line that YAML cannot read."""
    if "\t" in line:
        return "That line holds a tab: YAML wants spaces."
    if "{{" in line:
        return 'A text with {{ }} in it may need quotes: text: "{{ scenario.city }}".'
    return "Check the indentation and the quotes there."


def _question(path: Path | str, number: int, item: Any) -> Question:
    place = f"{path}, question {number}"
    settings = as_mapping(item, place, "Write its kind, name and text.")
    in_full = _full_names(place, settings)
    full = {in_full[str(name)]: value for name, value in settings.items()}
    if len(full) < len(settings):
        raise SurveyError(f"{place} has a setting twice, once in short.", fix="Leave one out.")
    try:
        return question_from_dict(full)
    except HeadraceError as error:
        raise SurveyError(f"{place}: {error.message}", fix=error.fix) from None


def _full_names(place: str, settings: dict[Any, Any]) -> dict[str, str]:
    """The full name of each setting; an error for a kind or a name that does not exist."""
    kinds = {kind.kind: kind for kind in kinds_for_files()}
    held = settings.get("kind")
    if held not in kinds:
        raise SurveyError(f"{place}: there is no kind of question called {held!r}.", fix=nearest(str(held), kinds))
    if _needs_program(kinds[held]):
        raise SurveyError(
            f"{place}: a {held} question needs a function, which a file cannot carry.",
            fix="Write the survey in Python, and name it: headrace run module:survey.",
        )
    known = {"kind": "kind"}
    for field in settings_in_files(kinds[held]):
        known |= dict.fromkeys(names_of(field.name), field.name)
    for name in settings:
        if name not in known:
            raise SurveyError(f"{place}: a {held} question has no setting {name!r}.", fix=nearest(str(name), known))
    return known


def as_mapping(value: Any, place: str, fix: str) -> dict[Any, Any]:
    if not isinstance(value, dict):
        raise SurveyError(f"{place} is not a set of `name: value` lines.", fix=fix)
    return cast("dict[Any, Any]", value)
