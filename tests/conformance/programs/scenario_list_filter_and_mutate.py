"""Some of the scenarios, and a field that is computed."""

from edsl import Scenario, ScenarioList

cities = ScenarioList([Scenario({"city": "Oslo", "size": 7}), Scenario({"city": "Lima", "size": 11})])

value = [
    [scenario["city"] for scenario in cities.filter("size > 10")],
    [dict(scenario) for scenario in cities.mutate("double = size * 2")],
    [scenario["city"] for scenario in cities.order_by("size", reverse=True)],
]
