"""What objects of EDSL hold that their own `to_dict()` leaves out without a word: functions, and a job's conditions.

Does not cover: what `to_dict()` gives (given_data).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from headrace.edsl_files.carried_over import CarriedOver

_MOST_LOOKED_AT = 10_000
_FUNCTIONS = {
    "answer_question_directly": "an agent's method answer_question_directly: add it in the program, with"
    " agent.add_direct_question_answering_method",
    "dynamic_traits_function": "an agent's dynamic_traits_function: give it in the program",
}


def note_functions(given: Any, notes: CarriedOver) -> None:
    """Note the functions of agents, and a job's where(), which no dict of EDSL's holds."""
    for agent in _agents(given):
        for name, note in _FUNCTIONS.items():
            if callable(getattr(agent, name, None)):
                notes.note(note)
    clauses: Any = getattr(given, "_where_clauses", None)
    for clause in cast("list[Any]", clauses) if isinstance(clauses, list) else []:
        notes.note(f"where({str(clause)[:200]!r}), which EDSL does not read either: write job.where(...) to mean it")


def _agents(given: Any) -> Iterable[Any]:
    kind = type(given).__name__
    if kind == "Agent":
        return [given]
    held = given if kind == "AgentList" else getattr(given, "agents", ()) if kind == "Jobs" else ()
    return (agent for agent, _ in zip(held, range(_MOST_LOOKED_AT), strict=False))
