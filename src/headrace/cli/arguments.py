"""Turns the arguments of a command into objects: surveys, lists and models.

Does not cover: the commands (cli.main), or running (interviews.api).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError, OptionError, SurveyError
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.survey.model import Model
from headrace.survey.model_text import model_from_text
from headrace.survey.survey import Survey
from headrace.survey.written_files import read_written


def job_from(
    survey: str,
    agents: str | None,
    scenarios: str | None,
    models: list[str],
    conditions: list[str],
    allow: list[str],
    reading: Mapping[str, Any],
) -> Job:
    """Makes the job of `headrace run`: a study or a survey. Lists and models of the command take the study's places."""
    study = _study_from(survey, allow)
    given = study.given_lists()
    job = Job(
        study.survey,
        agents=given.get("agents") if agents is None else AgentList.from_file(agents, **reading),
        models=ModelList(_models(models)) if models else study.models if study.has_models else None,
        scenarios=given.get("scenarios") if scenarios is None else ScenarioList.from_file(scenarios, **reading),
    )
    for condition in (*(each.source for each in study.conditions), *conditions):
        job = job.where(condition)
    return job


def mapped_job_from(
    template: str,
    data: str,
    schema: Path | None,
    system: str | None,
    models: list[str],
    image_columns: list[str],
    reading: Mapping[str, Any],
) -> Job:
    """Makes the job of `headrace map`."""
    rows = _rows(data, image_columns, reading)
    job = Job.map(_text_from(template), rows, schema=schema, system_prompt=system)
    return job.by(ModelList(_models(models))) if models else job


def _rows(data: str, image_columns: list[str], reading: Mapping[str, Any]) -> ScenarioList:
    """The rows of `headrace map`. Of a directory's files the column's name is chosen; in a file it holds paths."""
    path = Path(data)
    if not image_columns or not path.is_dir():
        rows = ScenarioList.from_file(data, **reading)
        return rows.with_files(*image_columns, folder=path.parent) if image_columns else rows
    if len(image_columns) > 1:
        raise OptionError("A directory has one column of files.", fix="Give --image-column once.")
    return ScenarioList.from_directory(path, recursive=True, key_name=image_columns[0])


def _models(written: list[str]) -> Iterator[Model]:
    return (model_from_text(text, "--model") for text in written)


def _text_from(template: str) -> str:
    """The text itself; behind an @ the content of that file."""
    if not template.startswith("@") or "{{" in template:
        return template
    return read_written(Path(template[1:]), fix="Check the path behind the @.")


def _study_from(text: str, allow: list[str]) -> Job:
    """Reads a study from a file, or as `module:object` from a program of the user's own."""
    module, _, name = text.partition(":")
    if not module or not name or Path(text).exists() or len(module) == 1:  # one letter before a colon is a drive
        return Job.load(text, allow=allow)
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does
    try:
        found = getattr(importlib.import_module(module), name)
    except HeadraceError:
        raise
    except (ImportError, AttributeError) as error:
        raise SurveyError(f"{text} cannot be imported: {error}.", fix="Write module:object, seen from here.") from error
    except Exception as error:  # the user's own program, which may raise anything
        what = f"{type(error).__name__}: {error}"
        raise SurveyError(f"{text} cannot be imported: {what}.", fix="To see where, add --debug.") from error
    if isinstance(found, Job):
        return found
    if not isinstance(found, Survey):
        raise SurveyError(f"{text} is a {type(found).__name__}, not a Survey.", fix="Name a Survey or a Job there.")
    return Job(found)
