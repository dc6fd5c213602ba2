"""One list for each field."""

from edsl import ScenarioList

scenarios = ScenarioList.from_source("nested_dict", {"a": {"x": 1}, "b": {"x": 2}})

value = sorted(scenario["x"] for scenario in scenarios)
