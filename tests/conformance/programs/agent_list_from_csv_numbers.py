"""Numbers in a CSV file are numbers."""

from pathlib import Path

from edsl import AgentList

Path("people.csv").write_text("job,age\ncook,31\nclerk,47\n")
agents = AgentList.from_csv("people.csv")

value = [agent.traits["age"] for agent in agents]
