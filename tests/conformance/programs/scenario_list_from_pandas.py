"""Scenarios from a data frame."""

import pandas as pd
from edsl import ScenarioList

frame = pd.DataFrame({"city": ["Oslo", "Lima"], "size": [7, 11]})
scenarios = ScenarioList.from_source("pandas", frame)

value = [[scenario["city"], int(scenario["size"])] for scenario in scenarios]
