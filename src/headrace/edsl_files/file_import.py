"""A file of EDSL's made into a file of ours: `headrace import study.json -o study.run`.

    EDSL's file          becomes
    results              a run file with these results
    a job                a run file that is ready to run, or a study in .yaml or .json
    a survey             a study in .yaml or .json; a run file where a model is given by HEADRACE_MODEL
    agents, scenarios    a list in .csv, .jsonl, .yaml or .json
    models               are part of a job: refused

Does not cover: reading each of them (from_edsl, results_import).
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from headrace.display import counted
from headrace.edsl_files.carried_files import folder_beside
from headrace.edsl_files.carried_over import CarriedOver
from headrace.edsl_files.from_edsl import read_with_notes
from headrace.edsl_files.given_data import class_of
from headrace.edsl_files.results_import import import_results, path_beside
from headrace.errors import EdslFileError, OptionError
from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ScenarioList
from headrace.store.run_file.run_file import RunFile
from headrace.survey.model_text import DEFAULT_MODEL_VARIABLE

_STUDIES = (".yaml", ".yml", ".json")
_LISTS = {"AgentList": "AgentList", "ScenarioList": "ScenarioList"}
_JOBS = ("Jobs", "Survey", "QuestionBase")


class ImportedFile(NamedTuple):
    """What was made, in words: `told` goes on behind the path; `is_ready_to_run` where it is a run file to resume."""

    path: Path
    told: str
    notes: CarriedOver
    is_ready_to_run: bool = False
    option: str | None = None  # of `headrace run`, that takes a list


def import_file(source: Path, output: Path | None) -> ImportedFile:
    """Make the file that `headrace import` was asked for; one that is there is never replaced."""
    found = class_of(source)
    target = output or _beside(source, found)
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free, with -o.")
    if found == "Results":
        if target.suffix.lower() in (*_STUDIES, ".csv", ".jsonl"):
            raise OptionError(
                f"{source} holds results, which become a run file.",
                fix=f"Name it so: -o {target.with_suffix('.run')}. headrace export makes other files of that.",
            )
        made = import_results(source, target)
        planned = "" if made.planned == made.interviews else f" of {made.planned:,} in the plan"
        return ImportedFile(target, f"{counted(made.interviews, 'interview')}{planned}", made.notes)
    if found in _JOBS:
        return _imported_job(source, target)
    if found in _LISTS:
        return _imported_list(source, target, _LISTS[found])
    raise EdslFileError(
        f"{source} holds EDSL's {found[:60]}, which is no file of its own here.",
        fix="Import a job, a survey, results, agents or scenarios; read others in a program, with from_edsl.",
    )


def _beside(source: Path, found: str) -> Path:
    beside = path_beside(source)
    if found == "Results":
        return beside
    target = beside.with_suffix(".jsonl" if found in _LISTS else ".yaml")
    return target if target != source else beside.with_suffix(".rows.jsonl")


def _imported_job(source: Path, target: Path) -> ImportedFile:
    job, notes = read_with_notes("Job", source, files=folder_beside(target))
    assert isinstance(job, Job)
    if target.suffix.lower() in _STUDIES:
        job.save(target)
        return ImportedFile(target, f"a study of {counted(len(job.survey), 'question')}", notes)
    if not job.has_models and DEFAULT_MODEL_VARIABLE not in os.environ:
        study = target.with_suffix(".yaml").name
        raise OptionError(
            f"{source} has no model, which a run file needs.",
            fix=f"Import it as a study, -o {study}, and name the model when you run that: run {study} --model gpt-4o.",
        )
    job.check()
    with closing(RunFile.open(target, job, RunOptions(), lambda: None)):
        pass
    return ImportedFile(target, f"{counted(len(job), 'interview')}, none of them conducted yet", notes, True)


def _imported_list(source: Path, target: Path, kind: str) -> ImportedFile:
    rows, notes = read_with_notes(kind, source, files=folder_beside(target))
    assert isinstance(rows, (AgentList, ScenarioList))
    match target.suffix.lower():
        case ".csv":
            rows.to_csv(target)
        case ".jsonl":
            rows.to_jsonl(target)
        case ".yaml" | ".yml" | ".json":
            rows.save(target)
        case _:
            raise OptionError(
                f"{target.name} is no name for a list.", fix="End it in .csv, .jsonl, .yaml or .json, with -o."
            )
    if isinstance(rows, AgentList) and not rows.settings.is_plain and target.suffix.lower() in (".csv", ".jsonl"):
        notes.note("codebooks and templates of the agents: a .yaml or .json file has them")
    option = "--agents" if isinstance(rows, AgentList) else "--scenarios"
    return ImportedFile(target, counted(len(rows), rows.what), notes, option=option)
