"""Two lists are joined by a field that both have."""

from edsl import Scenario, ScenarioList

cities = ScenarioList([Scenario({"city": "Oslo", "size": 1}), Scenario({"city": "Lima", "size": 2})])
sights = ScenarioList([Scenario({"city": "Oslo", "sight": "fjord"}), Scenario({"city": "Rome", "sight": "forum"})])
value = [
    sorted(sorted(row.items(), key=str) for row in map(dict, joined))
    for joined in (cities.inner_join(sights, by="city"), cities.left_join(sights, by="city"))
] + [[row["sight"] for row in cities.right_join(sights, by=["city"])]]
