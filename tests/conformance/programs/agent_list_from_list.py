"""Agents that differ in one trait."""

from edsl import AgentList

agents = AgentList.from_list("age", [20, 30, 40])

value = [len(agents), [dict(agent.traits) for agent in agents]]
