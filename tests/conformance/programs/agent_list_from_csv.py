"""Agents from a CSV file: their traits are its columns."""

from pathlib import Path

from edsl import AgentList

Path("people.csv").write_text("job,city\ncook,Oslo\nclerk,Lima\n")
agents = AgentList.from_csv("people.csv")

value = [dict(agent.traits) for agent in agents]
