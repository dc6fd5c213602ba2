"""A trait that has no value."""

from edsl import Agent, AgentList

agents = AgentList([Agent(traits={"age": 20, "job": "cook"}), Agent(traits={"age": None, "job": "clerk"})])

value = [sorted(agents.trait_keys), len(agents.filter("age != None"))]
