"""Numbers in a CSV file are numbers."""

from pathlib import Path

from edsl import ScenarioList

Path("cities.csv").write_text("city,people\nOslo,700000\nLima,11000000\n")

value = [scenario["people"] for scenario in ScenarioList.from_source("csv", "cities.csv")]
