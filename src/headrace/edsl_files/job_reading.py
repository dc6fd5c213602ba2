"""Whole jobs of EDSL's: survey, agents, scenarios, models, and which of their combinations are asked.

Does not cover: what each of these holds (survey_reading, list_reading, model_reading).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headrace.edsl_files.given_data import EdslData, refuse_other_class
from headrace.edsl_files.list_reading import agents_of, checked_items, scenarios_of
from headrace.edsl_files.model_reading import models_of
from headrace.edsl_files.survey_reading import survey_in
from headrace.errors import EdslFileError
from headrace.plan.job import Job
from headrace.plan.lists import AgentList, ModelList, ScenarioList

_PARTS = frozenset({"survey", "agents", "scenarios", "models"})


def job_of(data: EdslData) -> Job:
    """The job; conditions of EDSL's `include_when` are conditions of `where`."""
    held: dict[str, Any] = {}
    for name, value in data.members():
        if name not in _PARTS:
            refuse_other_class(data, ("Jobs", "Survey"), name, value)
        held[name] = _read(data, name, value)
    if "questions" in held:  # a survey alone: nobody is asked yet
        return Job(survey_in(held, data.notes))
    survey = held.pop("survey", None)
    if not isinstance(survey, Mapping):
        raise EdslFileError(f"{data.place} holds no job of EDSL's.", fix="Give what Jobs.save() or to_dict() wrote.")
    job = Job(survey_in(cast("Mapping[str, Any]", survey), data.notes))
    lists = [held.pop(name, None) for name in ("agents", "scenarios", "models")]
    job = job.by(*(given for given in lists if given is not None and len(given)))
    _note_rest(data, held)
    return _chosen(data, job, held)


def _read(data: EdslData, name: str, value: Any) -> Any:
    """A list is read as it comes: the file goes on behind it."""
    match name:
        case "agents":
            return AgentList(agents_of(value, data.notes))
        case "scenarios":
            return ScenarioList(scenarios_of(value, data.notes, data.files))
        case "models":
            return ModelList(models_of(value, data))
        case _:
            return value


def _note_rest(data: EdslData, held: dict[str, Any]) -> None:
    known = ("assignments", "assignment_mode", "include_expression", "_where_clauses", "edsl_class_name")
    if held.get("_depends_on"):
        raise EdslFileError(
            f"{data.place}: the job waits for the results of another one (_depends_on).",
            fix="Save and read the first job by itself, and give its results to the second: "
            "survey.by(results.to_scenario_list()).",
        )
    for method in held.pop("_post_run_methods", None) or ():
        data.notes.note(f"what is done with the results after the run: {_method_name(method)}()")
    for clause in held.get("_where_clauses") or ():
        data.notes.note(f"where({str(clause)[:200]!r}), which EDSL does not read either: write job.where(...)")
    for name, value in held.items():
        if name not in known and name != "_depends_on" and value:
            data.notes.note(f"the job's part {name[:60]!r}")


def _method_name(method: object) -> str:
    """EDSL writes a method as its name, its arguments and its options."""
    if isinstance(method, (list, tuple)) and method:
        return str(cast("list[object]", method)[0])[:60]
    return str(cast(object, method))[:60]


def _chosen(data: EdslData, job: Job, held: Mapping[str, Any]) -> Job:
    """The job with the combinations that EDSL's has: all, those of an expression, or agent and scenario in pairs."""
    if (expression := held.get("include_expression")) is not None:
        return job.where(str(expression))
    if (assignments := held.get("assignments")) is None:
        return job
    listed = [_places(row) for row in checked_items(assignments, "assignments", data.notes)]  # one value of the file
    rows = set(listed)
    if len(rows) == len(listed):
        if len(rows) == len(job):
            return job
        pairs = {(at, at, model) for at in range(len(job.agents)) for model in range(len(job.models))}
        if len(job.agents) == len(job.scenarios) and rows == pairs:
            return job.where("agent._index == scenario._index")
    raise EdslFileError(
        f"{data.place}: the job asks {len(listed):,} combinations that it lists one by one (assignments).",
        fix="Choose them with job.where(...) in the program, or save one job for each group of agents.",
    )


def _places(row: Any) -> tuple[Any, ...]:
    held: Mapping[str, Any] = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else {}
    return tuple(held.get(axis, held.get(f"{axis}_index")) for axis in ("agent", "scenario", "model"))
