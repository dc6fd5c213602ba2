"""docs/agents.md says what is there."""

import inspect
import re
from pathlib import Path

from headrace import Engine
from headrace.agents.context import AgentContext
from headrace.limits import MemoryLimits
from headrace.workers.limit_mechanisms import enforcement_layers
from tests.docs.documents import DOCS, files, run_program, sections, tables

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


def test_it_names_every_option_of_an_engine():
    (rows,) = tables(SECTIONS["The engine"])
    assert [row[0].strip("`") for row in rows] == list(inspect.signature(Engine).parameters)[1:]


def test_its_levels_are_the_governors():
    limits = MemoryLimits(budget_bytes=1)
    rows, _ = tables(SECTIONS["When memory is short"])
    told = [[int(number) for number in re.findall(r"(\d+) %", row[0])] for row in rows]
    levels = [
        [limits.shrink_at, limits.shrink_until],
        [limits.preempt_at, limits.preempt_until],
        [limits.emergency_at, limits.emergency_until],
    ]
    assert told == [[70], *[[round(share * 100) for share in level] for level in levels]]
    assert f"{limits.calm_s:.0f} s below" in SECTIONS["When memory is short"]


def test_its_layers_are_the_engines():
    (rows,) = tables(SECTIONS["What holds a worker to its memory"])
    assert [row[0] for row in rows] == [name for name, _ in enforcement_layers()]
