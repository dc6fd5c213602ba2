"""Agents that a condition holds for."""

from edsl import Agent, AgentList

agents = AgentList([Agent(name=f"p{i}", traits={"age": 20 + 10 * i, "job": "cook"}) for i in range(4)])

value = [[agent.name for agent in agents.filter("age > 25 and job == 'cook'")], len(agents)]
