"""One more trait for each agent of a list."""

from edsl import AgentList

agents = AgentList.from_list("age", [20, 30])
agents = agents.add_trait("city", ["Oslo", "Lima"])

value = [dict(agent.traits) for agent in agents]
