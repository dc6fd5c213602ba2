"""One prompt per row: the survey that `Job.map` runs. Covers: the question, its columns, and where rows come from.

It runs like any survey: a row is a scenario, and the one agent has no traits.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from headrace.errors import ListError, SurveyError
from headrace.plan.lists import ScenarioList
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
    """The rows to map over: a file, a list, a data frame, or any iterable of dicts; read as a stream."""
    match data:
        case ScenarioList():
            return data
        case str() | Path():
            return ScenarioList.from_file(data)
        case dict():
            raise ListError("The data is one row.", fix="Give a list of rows, or put this one in brackets.")
        case Iterable():
            return ScenarioList(_records(data))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            raise ListError(f"Rows cannot be read from a {type(data).__name__}.", fix="Give a file or a list of dicts.")


def _records(data: Iterable[Any]) -> Iterable[dict[str, Any]]:
    """A data frame's rows as dicts, one by one; anything else is rows already."""
    frame = cast(Any, data)
    if hasattr(frame, "iter_rows"):  # polars
        return frame.iter_rows(named=True)
    if hasattr(frame, "itertuples"):  # pandas
        columns = [str(column) for column in frame.columns]
        for column in columns:
            if columns.count(column) > 1:
                raise ListError(f"The data frame has the column {column!r} twice.", fix="Give each a name of its own.")
        return (_without_gaps(columns, row) for row in frame.itertuples(index=False, name=None))
    return data


def _without_gaps(columns: list[str], row: tuple[Any, ...]) -> dict[str, Any]:
    """A row with None for missing values, which pandas writes as NaN or NA; neither equals itself."""
    return {column: value if _is_value(value) else None for column, value in zip(columns, row, strict=True)}


def _is_value(value: Any) -> bool:
    try:
        return bool(value == value)
    except (TypeError, ValueError):  # NA has no truth; an array has several, and is a value
        return type(value).__name__ not in ("NAType", "NaTType")


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
