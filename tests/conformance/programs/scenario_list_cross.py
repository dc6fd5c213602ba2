"""Two lists multiplied: every one with every one, the first varies slowest."""

from edsl import ScenarioList

cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
foods = ScenarioList.from_list("food", ["rice", "fish"])

value = [dict(scenario) for scenario in cities * foods]
