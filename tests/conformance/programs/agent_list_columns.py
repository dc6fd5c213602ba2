"""Traits renamed, kept, dropped."""

from edsl import Agent, AgentList

agents = AgentList([Agent(traits={"age": 20, "job": "cook"}), Agent(traits={"age": 30, "job": "clerk"})])

value = [
    [dict(agent.traits) for agent in agents.rename("age", "years")],
    [dict(agent.traits) for agent in agents.keep("job")],
    [dict(agent.traits) for agent in agents.drop("job")],
    [dict(agent.traits) for agent in agents.select("age")],
]
