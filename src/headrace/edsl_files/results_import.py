"""Results that EDSL saved, as a run file: `Results.from_edsl(path, out)`, so that old studies can be asked questions.

Two passes over the results, each one at a time: the first finds agents, scenarios, models and iterations
(placed_results), the second writes the rows. The plan is the product of the lists: combinations that EDSL's results do
not have are interviews that were not conducted yet. A question that cannot be asked here keeps its answers, and refuses
to be asked again. The file gets its name when it is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from headrace.edsl_files.carried_files import folder_beside
from headrace.edsl_files.carried_over import CarriedOver, as_edsl_errors
from headrace.edsl_files.given_data import EdslData, opened, refuse_other_class
from headrace.edsl_files.list_reading import agents_of, checked_items, scenarios_of
from headrace.edsl_files.model_reading import models_of
from headrace.edsl_files.placed_results import PlacedResults
from headrace.edsl_files.result_rows import ResultRows
from headrace.edsl_files.survey_reading import survey_in
from headrace.errors import EdslFileError, OptionError, SurveyError
from headrace.limits import RunOptions
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList
from headrace.plan.product import Plan
from headrace.store.run_file.rows import row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.survey.questions import Question, question_from_dict
from headrace.survey.survey import Survey

_BATCH = 200
_MOST_COMBINATIONS = 300_000_000  # a bit each, several times over, while the file is written
_IGNORED = frozenset({"cache", "task_history", "name", "edsl_class_name"})
_BESIDE = ("", "-wal", "-shm", "-journal")


class Imported(NamedTuple):
    """`interviews` of the `planned` ones have a row."""

    interviews: int
    planned: int
    notes: CarriedOver


def import_results(given: Any, target: Path) -> Imported:
    """Make a run file of what EDSL saved; all of it, or nothing."""
    if target.exists():
        raise OptionError(f"{target} is there already.", fix="Give a name that is free.")
    making = target.with_name(f"{target.name}.importing")
    _remove(making)  # of an import that was killed
    try:
        with PlacedResults() as placed:
            survey, notes = _first_pass(given, placed)
            with as_edsl_errors(notes):
                job = _job(given, survey, placed, notes, folder_beside(target))
            _second_pass(given, job, placed, notes, making)
            making.replace(target)
            planned = Plan.of(placed.shape).size
            if planned > len(placed):
                notes.note(
                    f"{planned - len(placed):,} combinations of these agents, scenarios, models and iterations, which"
                    " EDSL's results do not have: `headrace resume` would ask them"
                )
            return Imported(len(placed), planned, notes)
    finally:
        _remove(making)


def path_beside(given: Any) -> Path:
    """The run file of an import that names none: beside EDSL's file, with its name."""
    if not isinstance(given, (str, Path)) or str(given).lstrip()[:1] in ("{", "["):
        raise OptionError("The run file has no name.", fix='Give a path: Results.from_edsl(..., "study.run").')
    path = Path(given).expanduser()
    return path.with_name(f"{path.name.partition('.')[0] or path.stem}.run")


def _remove(making: Path) -> None:
    for suffix in _BESIDE:
        making.with_name(making.name + suffix).unlink(missing_ok=True)


def _first_pass(given: Any, placed: PlacedResults) -> tuple[Survey, CarriedOver]:
    survey: Any = None
    with opened(given) as data:
        for name, value in data.members():
            if name == "survey":
                survey = value
            elif name == "data":
                for result in checked_items(value, "results", data.notes):
                    placed.add(result, data.notes)
            elif name not in _IGNORED:
                refuse_other_class(data, ("Results",), name, value)
                if value:
                    data.notes.note(f"the results' part {name[:60]!r}")
        if not isinstance(survey, Mapping):
            raise EdslFileError(f"{data.place} holds no results of EDSL's.", fix="Give what Results.save() wrote.")
        if not len(placed):
            raise EdslFileError(f"{data.place} holds no result.", fix="There is nothing to import.")
        return _survey(cast("Mapping[str, Any]", survey), data.notes), data.notes


def _survey(held: Mapping[str, Any], notes: CarriedOver) -> Survey:
    """The survey; where its rules cannot be read, its questions."""
    if held.get("questions_to_randomize"):
        notes.note("the order in which options were shown: prompts have it")
    try:
        return survey_in(held, notes, unsupported=_answered_question)
    except EdslFileError as error:
        notes.note(f"rules, memory and groups of the survey ({error.message[:200]})")
        return survey_in({"questions": held.get("questions")}, notes, unsupported=_answered_question)


def _answered_question(settings: Mapping[str, Any], why: str, notes: CarriedOver) -> Question:
    """A question that has answers and cannot be asked: it stands for a function that no file carries."""
    notes.note(f"{why}: its answers are kept, and it cannot be asked again")
    told = f"of EDSL's {str(settings.get('question_type'))[:60]} question"
    text = settings.get("question_text")
    return question_from_dict(
        {
            "kind": "functional",
            "question_name": settings.get("question_name"),
            "question_text": text if isinstance(text, str) and text.strip() else "(no text)",
            "func": {"function": told},
        }
    )


def _job(given: Any, survey: Survey, placed: PlacedResults, notes: CarriedOver, files: Path) -> Job:
    size = Plan.of(placed.shape).size
    if size > _MOST_COMBINATIONS:
        _, agents, scenarios, models = placed.shape
        raise EdslFileError(
            f"{notes.place}: {len(placed):,} results of {agents:,} agents, {scenarios:,} scenarios and {models:,}"
            f" models are {size:,} combinations, and most of them are missing.",
            fix="Save the results in parts, those of some agents each, and import each part.",
        )
    path = Path(given) if isinstance(given, (str, Path)) and notes.place == str(given) else None
    data = EdslData(iter(()), notes, path)
    job = Job(
        survey,
        agents=AgentList(agents_of(placed.items("agent"), notes)),
        scenarios=ScenarioList(scenarios_of(placed.items("scenario"), notes, files)),
        models=ModelList(models_of(placed.items("model"), data)),
    )
    try:
        job.settle_names()
    except SurveyError as error:  # EDSL asks with nothing in place of a field that nobody has
        notes.note(f"asking it again, unless the survey is changed: {error.message[:300]}")
        job.origin = files  # its names stay as they are: it was asked already
    return job


def _second_pass(given: Any, job: Job, placed: PlacedResults, notes: CarriedOver, making: Path) -> None:
    options = RunOptions(n=placed.shape.iteration)
    with closing(RunFile.open(making, job, options, lambda: None)) as file, opened(given) as data:
        rows = ResultRows(job.survey, file.dictionary, notes)
        places = iter(placed.coordinates())
        for name, value in data.members():
            if name != "data":
                continue
            results = zip(cast("Iterable[Any]", value), places, strict=False)
            while batch := list(islice(results, _BATCH)):
                made = [rows.row(result, file.plan.ordinal(at), at) for result, at in batch]
                file.journal.commit([row_batch(made)], ())
        if file.stored.count != len(placed):
            raise EdslFileError(f"{notes.place} changed while it was read.", fix="Import it again.")
