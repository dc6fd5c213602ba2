"""Fields renamed, kept, dropped, selected."""

from edsl import Scenario, ScenarioList

cities = ScenarioList([Scenario({"city": "Oslo", "size": 7}), Scenario({"city": "Lima", "size": 11})])

value = [
    [dict(scenario) for scenario in cities.rename({"city": "town"})],
    [dict(scenario) for scenario in cities.keep("city")],
    [dict(scenario) for scenario in cities.drop("city")],
    [dict(scenario) for scenario in cities.select("size")],
    [dict(scenario) for scenario in cities],
]
