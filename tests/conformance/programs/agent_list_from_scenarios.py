"""A scenario list becomes an agent list."""

from edsl import Scenario, ScenarioList

scenarios = ScenarioList([Scenario({"age": 20, "job": "cook"}), Scenario({"age": 30, "job": "clerk"})])
agents = scenarios.to_agent_list()

value = [[dict(agent.traits) for agent in agents], type(agents).__name__]
