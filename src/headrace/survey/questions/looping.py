"""Makes one question per scenario out of a question with templates: `question.loop(scenarios)`.

A name that the scenario does not have stays in its text, to be filled when the question is asked. Data is never a
template: braces in a scenario's values are written so that they come out as they are.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from headrace.errors import SurveyError, nearest
from headrace.survey.questions.base import Question
from headrace.survey.templates import CannotRender, Template, is_template

_Looped = TypeVar("_Looped", bound=Question)
_TAG = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_ONE_NAME = re.compile(r"\{\{\s*([\w.]+)\s*\}\}")

_BRACE = '{{ "{" }}'


def looped(question: _Looped, scenarios: Iterable[Mapping[str, Any]]) -> list[_Looped]:
    """As many questions as there are scenarios, which a person has written or chosen."""
    made: list[_Looped] = []
    for number, scenario in enumerate(scenarios):
        if not isinstance(scenario, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise SurveyError(f"loop() was given {scenario!r}.", fix="Give it a ScenarioList.")
        one = question.filled(_ScenarioFilling(question.question_name, dict(scenario)))
        if one.question_name == question.question_name:
            one = dataclasses.replace(one, question_name=f"{question.question_name}_{number}")
        made.append(one)
    return made


class _ScenarioFilling:
    """Renders what one scenario can fill, and leaves the rest as it is."""

    def __init__(self, question_name: str, scenario: dict[str, Any]) -> None:
        self._where = f"Question {question_name!r}"
        self._known = {**scenario, "scenario": scenario}
        self._fields = list(scenario)

    def text(self, template: str) -> str:
        if self._can_fill(template):
            return _as_template(self._render(template))
        return _TAG.sub(lambda tag: self._filled_tag(tag[0]), template)

    def value(self, template: str) -> Any:
        match = _ONE_NAME.fullmatch(template.strip())
        if match is None or not self._can_fill(template):
            return self.text(template)
        return _as_template(_look_up(self._known, match[1]))

    def _filled_tag(self, tag: str) -> str:
        # Beside other text one brace may make a mark: each is quoted.
        return self._render(tag).replace("{", _BRACE) if self._can_fill(tag) else tag

    def _can_fill(self, template: str) -> bool:
        try:
            names = Template(template, self._where).names
        except SurveyError:  # half of a text may be no template: the whole is checked when the survey is made
            return False
        for name in names:
            self._refuse_mistyped(name)
        return bool(names) and all(_has(self._known, name) for name in names)

    def _refuse_mistyped(self, name: str) -> None:
        """Other fields are filled when the question is asked; one that is nearly a field here is a typing mistake."""
        root, _, field = name.partition(".")
        if root == "scenario" and field and not _has(self._known, name):
            close = nearest(field.partition(".")[0], self._fields)
            if close.startswith("Did"):
                raise SurveyError(f"{self._where}: the scenarios of loop() have no {field!r}.", fix=close)

    def _render(self, template: str) -> str:
        try:
            return Template(template, self._where).render(self._known)
        except CannotRender as error:
            raise SurveyError(f"{self._where}: {error.message}.", fix="Mend its text, or the scenario.") from None


def _has(known: dict[str, Any], name: str) -> bool:
    found: Any = known
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            return False
        found = cast("dict[str, Any]", found)[part]
    return True


def _look_up(known: dict[str, Any], name: str) -> Any:
    found: Any = known
    for part in name.split("."):
        found = found[part]
    return found


def _as_template(value: Any) -> Any:
    """A value that comes out as it is when it is rendered: its braces are quoted where they look like a template's."""
    match value:
        case str():
            return value.replace("{", _BRACE) if is_template(value) else value
        case list() | tuple():
            return [_as_template(item) for item in cast("list[Any]", value)]
        case dict():
            held = cast("dict[Any, Any]", value)
            return {_as_template(key): _as_template(item) for key, item in held.items()}
        case _:
            return value
