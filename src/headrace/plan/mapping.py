"""One prompt per row: the survey that `Job.map` runs. Covers: the question, its columns, and where rows come from.

It runs like any survey: a row is a scenario, and the one agent has no traits.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from headrace.errors import ListError, SurveyError
from headrace.plan.lists import ScenarioList
from headrace.plan.rows.data_frames import is_arrow, records
from headrace.survey.agent import Agent
from headrace.survey.questions.base import Question
from headrace.survey.questions.mapped import MappedPrompt, MappedProperty, properties
from headrace.survey.schemas import as_schema
from headrace.survey.survey import Survey

WHOLE = "output"


def mapped_survey(template: str, schema: Any) -> Survey:
    if not isinstance(template, str) or not template.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise SurveyError("There is no text to send.", fix='Write one like "Label the sentiment: {{ text }}".')
    held = None if schema is None else as_schema(schema)
    named = list(properties(held))
    _check_names_differ([name for name, _ in named])
    whole = _free_name({name.lower() for name, _ in named})
    prompt = MappedPrompt(question_name=whole, question_text=template, output_schema=held)
    columns: list[Question] = [MappedProperty.taken_from(whole, name, inner) for name, inner in named]
    return Survey([prompt, *columns])


def mapped_agent(system_prompt: str | None) -> Agent:
    return Agent(instruction=system_prompt)


def rows_of(data: Any) -> ScenarioList:
    """The rows to map over: a file, a list, a data frame, an Arrow table, or any iterable of dicts."""
    match data:
        case ScenarioList():
            return data
        case str() | Path():
            return ScenarioList.from_file(data)
        case dict():
            raise ListError("The data is one row.", fix="Give a list of rows, or put this one in brackets.")
        case _ if is_arrow(data):
            return ScenarioList.from_arrow(data)
        case Iterable():
            return ScenarioList(records(data))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise ListError(f"Rows cannot be read from a {type(data).__name__}.", fix="Give a file or a list of dicts.")


def _check_names_differ(names: list[str]) -> None:
    """Refuses properties that differ only in case: they become columns, where SQLite takes them for one."""
    seen: dict[str, str] = {}
    for name in names:
        if (before := seen.setdefault(name.lower(), name)) != name:
            raise SurveyError(f"The schema has properties {before!r} and {name!r}.", fix="Rename one.")


def _free_name(taken: set[str]) -> str:
    name = WHOLE
    while name in taken:
        name += "_"
    return name
