"""Scenarios from a CSV file."""

from pathlib import Path

from edsl import ScenarioList

Path("cities.csv").write_text("city,country\nOslo,Norway\nLima,Peru\n")

value = [dict(scenario) for scenario in ScenarioList.from_source("csv", "cities.csv")]
