"""What users call: `Survey.from_edsl(...)`, the same for agents, scenarios, models and jobs. Each warns of what was not
carried over.

Does not cover: results, which become a run file (results_import).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from headrace.edsl_files.carried_over import CarriedOver, as_edsl_errors
from headrace.edsl_files.given_data import EdslData, opened
from headrace.edsl_files.job_reading import job_of
from headrace.edsl_files.list_reading import agent_list_of, agent_of, scenario_list_of, scenario_of
from headrace.edsl_files.model_reading import model_list_of, model_of
from headrace.edsl_files.survey_reading import survey_of

_READERS: dict[str, Callable[[EdslData], Any]] = {
    "Survey": survey_of,
    "Agent": agent_of,
    "AgentList": agent_list_of,
    "Scenario": scenario_of,
    "ScenarioList": scenario_list_of,
    "Model": model_of,
    "ModelList": model_list_of,
    "Job": job_of,
}
_Made = TypeVar("_Made")


def from_edsl(kind: type[_Made], given: Any, allow: str | Iterable[str] = (), files: str | Path | None = None) -> _Made:
    """Make the object of this class that an object, a dict, a JSON text or a file of EDSL's describes."""
    made, notes = read_with_notes(kind.__name__, given, allow, files)
    notes.warn()
    return made


def read_with_notes(
    kind: str, given: Any, allow: str | Iterable[str] = (), files: str | Path | None = None
) -> tuple[Any, CarriedOver]:
    """The object, and the notes of what was not carried over; `files` is the folder for files in its scenarios."""
    with opened(given) as data:
        if files is not None:
            data.files = Path(files).expanduser()
        names = [allow] if isinstance(allow, str) else allow
        data.allowed = frozenset(name.rstrip("/") or name for name in names)
        with as_edsl_errors(data.notes):
            return _READERS[kind](data), data.notes
