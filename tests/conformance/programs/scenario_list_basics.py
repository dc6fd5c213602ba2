"""Lists of scenarios: length, indexing, slices, iteration, plus, append."""

from edsl import Scenario, ScenarioList

cities = ScenarioList([Scenario({"city": "Oslo", "size": 7}), Scenario({"city": "Lima", "size": 11})])
more = cities + ScenarioList([Scenario({"city": "Bern", "size": 1})])
cities.append(Scenario({"city": "Rome", "size": 4}))

value = [
    len(cities),
    cities[0]["city"],
    [dict(scenario) for scenario in cities[1:]],
    [scenario["city"] for scenario in more],
    list(cities[0].keys()),
]
