"""Agents named by a trait."""

from edsl import AgentList

agents = AgentList.from_list("who", ["Ada", "Bob"]).add_trait("age", [36, 27])
agents.give_names("who")

value = [[agent.name, agent.traits["age"]] for agent in agents]
