"""Agents and scenarios of EDSL's, one at a time: a list of any length stays a stream until the list's own spool.

Does not cover: what agents and scenarios are (survey.agent, survey.scenario).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from headrace.edsl_files.carried_files import with_files
from headrace.edsl_files.carried_over import CarriedOver
from headrace.edsl_files.given_data import EdslData, refuse_other_class
from headrace.errors import EdslFileError
from headrace.plan.lists import AgentList, ScenarioList
from headrace.survey.agent import AGENT_PARTS, Agent
from headrace.survey.scenario import Scenario

_MARKS = ("edsl_version", "edsl_class_name")
_CODE = ("source_code", "pickle")


def agent_list_of(data: EdslData) -> AgentList:
    held: dict[str, Any] = {}
    for name, value in data.members():
        refuse_other_class(data, ("AgentList",), name, value)
        held[name] = AgentList(agents_of(value, data.notes)) if name == "agent_list" else value
    if "agent_list" not in held:
        raise EdslFileError(f"{data.place} holds no list of agents.", fix="Give what EDSL's AgentList wrote.")
    agents = cast("AgentList", held.pop("agent_list"))
    # For all of them; each agent mostly has the same written with it already.
    if (codebook := held.pop("codebook", None)) and not _is_codebook_of(agents, codebook):
        agents.set_codebook(codebook)
    if template := held.pop("traits_presentation_template", None):
        agents.set_traits_presentation_template(template)
    _note_parts(held, "the list's part", data.notes)
    return agents


def agent_of(data: EdslData) -> Agent:
    held = dict(data.members())
    for name, value in held.items():
        refuse_other_class(data, ("Agent",), name, value)
    return agent_from(held, data.notes)


def agents_of(items: Any, notes: CarriedOver) -> Iterator[Agent]:
    for item in checked_items(items, "agents", notes):
        yield agent_from(item, notes)


def agent_from(item: Any, notes: CarriedOver) -> Agent:
    """One agent; its functions, which only old files have, are refused by name."""
    held = checked_item(item, "an agent", notes)
    for name in held:
        if any(code in name for code in _CODE):
            raise EdslFileError(
                f"{notes.place}: an agent carries Python code ({name[:60]}), which is never executed.",
                fix="Save the agents without it in EDSL, and give the function in the program.",
            )
    if "traits" not in held:  # as EDSL once wrote them
        held = {"traits": {name: value for name, value in held.items() if name not in _MARKS}}
    known = ("traits", *AGENT_PARTS)
    parts: dict[str, Any] = {name: held[name] for name in known if held.get(name) is not None}
    _note_parts({name: value for name, value in held.items() if name not in known}, "an agent's part", notes)
    return Agent(**parts)


def scenario_list_of(data: EdslData) -> ScenarioList:
    found: ScenarioList | None = None
    for name, value in data.members():
        if name == "scenarios":
            found = ScenarioList(scenarios_of(value, data.notes, data.files))
        else:
            refuse_other_class(data, ("ScenarioList",), name, value)
            _note_parts({name: value}, "the list's part", data.notes)
    if found is None:
        raise EdslFileError(f"{data.place} holds no list of scenarios.", fix="Give what EDSL's ScenarioList wrote.")
    return found


def scenario_of(data: EdslData) -> Scenario:
    held = dict(data.members())
    refuse_other_class(data, ("Scenario",), "edsl_class_name", held.get("edsl_class_name"))
    return scenario_from(held, data.notes, data.files)


def scenarios_of(items: Any, notes: CarriedOver, files: Path | None) -> Iterator[Scenario]:
    """The scenarios; `files` is the folder for the files in them."""
    for item in checked_items(items, "scenarios", notes):
        yield scenario_from(item, notes, files)


def scenario_from(item: Any, notes: CarriedOver, files: Path | None) -> Scenario:
    held = checked_item(item, "a scenario", notes)
    fields = {name: value for name, value in held.items() if name not in _MARKS}
    return Scenario(with_files(fields, files, notes))


def checked_items(items: Any, what: str, notes: CarriedOver) -> Iterable[Any]:
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise EdslFileError(f"{notes.place}: its {what} are no list.", fix="Save it again in EDSL.")
    return cast("Iterable[Any]", items)


def checked_item(item: Any, what: str, notes: CarriedOver) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise EdslFileError(f"{notes.place}: {str(item)[:60]!r} is not {what}.", fix="Save it again in EDSL.")
    return dict(cast("Mapping[str, Any]", item))


def _is_codebook_of(agents: AgentList, codebook: Mapping[str, Any]) -> bool:
    return all(dict(settings.codebook) == dict(codebook) for settings in agents.settings.entries)


def _note_parts(held: Mapping[str, Any], what: str, notes: CarriedOver) -> None:
    for name, value in held.items():
        if name not in _MARKS and value:
            notes.note(f"{what} {name[:60]!r}")
