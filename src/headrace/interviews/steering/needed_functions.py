"""The functions that a run file refers to and cannot carry.

Does not cover: a run file's figures (interviews.steering.run_file_status), which do without the survey's classes.
"""

from __future__ import annotations

from pathlib import Path

from headrace.plan.called_models import called_models
from headrace.store.contents import decoding
from headrace.store.run_file.header import RunHeader
from headrace.store.run_file.reader import Reader
from headrace.store.run_file.stored_job.creation import read_settings
from headrace.survey.model import MissingFunction
from headrace.survey.survey import Survey


def needed_functions(path: Path) -> list[str]:
    """The functions, by name, that a run file refers to: no command can give them, only the program that made it."""
    reader = Reader(path)
    try:
        with reader.snapshot() as connection:
            header = RunHeader.load(connection, path)
            with decoding(path, "its survey"):
                survey, settings = Survey.from_row(header.survey_row), read_settings(connection)
    finally:
        reader.close()
    owners = (*called_models(survey, header.models), *survey.questions, *settings.entries)
    needed = [function for owner in owners for function in owner.functions.values()]
    names = (each.reference.partition("@")[0] for each in needed if isinstance(each, MissingFunction))
    return list(dict.fromkeys(names))
