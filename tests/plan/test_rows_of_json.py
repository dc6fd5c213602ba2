"""Rows of JSON whose fields differ: which of them is an agent's name is told for each row."""

import gzip
import json

import pytest

from headrace import AgentList, ScenarioList
from headrace.errors import ListError


def _written(path, rows):
    texts = [json.dumps(row) for row in rows]
    path.write_text("\n".join(texts) if path.suffix == ".jsonl" else f"[{','.join(texts)}]", encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["people.jsonl", "people.json"])
def test_the_name_is_found_in_any_row(tmp_path, name):
    path = _written(tmp_path / name, [{"a": 1}, {"name": "B", "a": 2}, {"agent_name": "C", "name": "x", "a": 3}])
    agents = AgentList.from_file(path)
    assert [(agent.name, agent.traits) for agent in agents] == [
        (None, {"a": 1}),
        ("B", {"a": 2}),
        ("C", {"name": "x", "a": 3}),
    ]
    assert agents.digest != ScenarioList.from_file(path).digest


@pytest.mark.parametrize("name", ["people.jsonl", "people.json"])
def test_two_names_for_one_agent_are_refused(tmp_path, name):
    path = _written(tmp_path / name, [{"who": "A"}, {"who": "B", "agent_name": "C"}])
    with pytest.raises(ListError, match="has a field 'agent_name' of its own"):
        AgentList.from_file(path, name_field="who")


def test_files_of_edsl_are_refused_with_the_way_to_read_them(tmp_path):
    header = {"__header__": True, "edsl_class_name": "AgentList", "n_agents": 1, "edsl_version": "1.0.9"}
    lines = _written(tmp_path / "a.jsonl", [header, {"traits": {"age": 36}, "name": "Ada"}])
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"agent_list": []}'))
    (tmp_path / "a.ep").write_bytes(b"PK")
    for read in (AgentList.from_jsonl, AgentList.from_file, ScenarioList.from_jsonl):
        with pytest.raises(ListError, match=r"headrace import .*a.jsonl -o .*a.rows.jsonl"):
            read(lines)
    for name in ("a.json.gz", "a.ep"):
        with pytest.raises(ListError, match=f"headrace import .*{name}"):
            AgentList.from_source(tmp_path / name)
    (agent,) = AgentList.from_edsl(lines)
    assert (agent.name, agent.traits) == ("Ada", {"age": 36})
