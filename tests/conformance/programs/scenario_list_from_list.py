"""Scenarios of one field, in the two spellings."""

from edsl import ScenarioList

a = ScenarioList.from_list("city", ["Oslo", "Lima"])
b = ScenarioList.from_source("list", "city", ["Oslo", "Lima"])

value = [[dict(scenario) for scenario in a], [dict(scenario) for scenario in b]]
