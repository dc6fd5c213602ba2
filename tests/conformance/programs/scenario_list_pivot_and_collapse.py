"""Rows become fields, and fields lists."""

from edsl import Scenario, ScenarioList

wide = ScenarioList([Scenario({"id": 1, "p": 5, "q": 6}), Scenario({"id": 2, "p": 7, "q": 8})])
groups = ScenarioList([Scenario({"g": 1, "v": "a"}), Scenario({"g": 1, "v": "b"}), Scenario({"g": 2, "v": "c"})])
value = [
    [dict(row) for row in wide.unpivot(id_vars=["id"]).pivot(id_vars=["id"])],
    [dict(row) for row in groups.collapse("v")],
    [dict(row) for row in groups.collapse("v", separator="; ", prefix="<", postfix=">", add_count=True)],
    [dict(row) for row in ScenarioList([Scenario({"a": ["x", "y"], "b": [1, 2]})]).zip("a", "b", "c")],
]
