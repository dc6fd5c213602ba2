"""One scenario for each item of a list."""

from edsl import Scenario, ScenarioList

scenarios = ScenarioList(
    [Scenario({"city": "Oslo", "food": ["fish", "rice"]}), Scenario({"city": "Lima", "food": ["beans"]})]
)

value = [dict(scenario) for scenario in scenarios.expand("food")]
