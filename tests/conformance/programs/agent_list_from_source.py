"""from_source knows what a CSV file is, and which column is the name."""

from pathlib import Path

from edsl import AgentList

Path("people.csv").write_text("who,job\nAda,cook\nBob,clerk\n")
agents = AgentList.from_source("csv", "people.csv", name_field="who")

value = [[agent.name, agent.traits.get("job")] for agent in agents]
