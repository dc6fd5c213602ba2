"""Bounds of a number from the scenario."""

from edsl import Model, QuestionNumerical, Scenario

q = QuestionNumerical(question_name="n", question_text="How many?", min_value=1, max_value="{{ scenario.most }}")
results = q.by(Scenario({"most": 5})).by(Model("test", canned_response="4")).run()

value = results.select("n").to_list()
