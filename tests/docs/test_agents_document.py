"""docs/agents.md says what is there."""

import inspect
import re
from pathlib import Path

from headrace import task
from headrace.agents.context import AgentContext
from headrace.agents.engine.run_handle import Run, RunStatus
from headrace.limits import QueueLimits
from headrace.store.engine_file.engine_schema import RunState
from tests.docs.documents import DOCS, code_names, files, run_program, sections, tables

DOCUMENT = (DOCS / "agents.md").read_text("utf-8")
SECTIONS = {section.title: section.text for section in sections(DOCUMENT)}


def test_its_program_runs_and_runs_again(tmp_path: Path):
    (tmp_path / "town.py").write_text(files(DOCUMENT)["town.py"], "utf-8")
    shown = [run_program(tmp_path / "town.py", tmp_path) for _ in range(2)]
    assert shown[0] == shown[1]
    assert re.fullmatch(r"\[\d+, 'a town', 0, '42'\]\nactive\n", shown[0])


def test_it_names_everything_that_a_run_can_do():
    (rows,) = tables(SECTIONS["What a run can do"])
    named = set(re.findall(r"`ctx\.(\w+)", " ".join(row[0] + row[1] for row in rows)))
    for_executors = {"close", "function_returned", "function_raised"}
    assert named == {name for name in vars(AgentContext) if not name.startswith("_")} - for_executors
    calls = dict(re.findall(r"`ctx\.(\w+)\((.*?)\)`", " ".join(row[0] for row in rows)))
    for name, written in calls.items():
        known = inspect.signature(getattr(AgentContext, name)).parameters
        assert set(re.findall(r"(\w+)=", written)) <= set(known), name


def test_its_conversation_runs(tmp_path: Path):
    (tmp_path / "chat.py").write_text(files(DOCUMENT)["chat.py"], "utf-8")
    assert run_program(tmp_path / "chat.py", tmp_path) == "2 turns\n"
    assert (tmp_path / "sent.log").read_text("utf-8") == "to ann: You are welcome.\n" * 2


def test_it_names_every_option_of_a_function():
    (rows,) = tables(SECTIONS["Options of a function"])
    assert sorted(row[0].strip("`") for row in rows) == sorted(set(inspect.signature(task).parameters) - {"function"})
    assert f"dies {['', 'once', 'twice', 'three times'][QueueLimits().most_losses + 1]}" in DOCUMENT


def test_it_names_what_a_handle_has():
    section = SECTIONS["The handle of a run"]
    (rows,) = tables(section)
    named = set(re.findall(r"run\.(\w+)\(", " ".join(row[0] for row in rows)))
    assert named == {name for name in vars(Run) if not name.startswith("_")}
    assert set(code_names(section)) >= {state.name for state in RunState}
    assert set(code_names(rows[1][1])) == set(RunStatus.__dataclass_fields__) | {"RunStatus"}
