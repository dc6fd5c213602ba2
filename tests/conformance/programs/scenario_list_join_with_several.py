"""A row that has several partners makes a row with each."""

from edsl import Scenario, ScenarioList

cities = ScenarioList([Scenario({"city": "Oslo", "size": 1})])
sights = ScenarioList([Scenario({"city": "Oslo", "sight": "fjord"}), Scenario({"city": "Oslo", "sight": "opera"})])
value = [row["sight"] for row in cities.left_join(sights, by="city")]
