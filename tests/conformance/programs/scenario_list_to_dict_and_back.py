"""Lists of scenarios and of agents as dicts, and made from them."""

import json

from edsl import Agent, AgentList, ScenarioList

cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
people = AgentList([Agent(name="Ada", traits={"age": 36}, instruction="Be brief.")])
cities_again = ScenarioList.from_dict(json.loads(json.dumps(cities.to_dict())))
people_again = AgentList.from_dict(json.loads(json.dumps(people.to_dict())))

value = [
    [dict(scenario) for scenario in cities_again],
    [[agent.name, dict(agent.traits), agent.instruction] for agent in people_again],
]
