"""Two lists of agents multiplied."""

from edsl import AgentList

agents = AgentList.from_list("age", [20, 30]) * AgentList.from_list("job", ["cook", "clerk"])

value = [dict(agent.traits) for agent in agents]
