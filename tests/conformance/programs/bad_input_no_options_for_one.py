"""Options that are empty for one scenario fail that interview, and the others run."""

from edsl import Model, QuestionMultipleChoice, Scenario, ScenarioList

q = QuestionMultipleChoice(question_name="q", question_text="Which?", question_options="{{ scenario.options }}")
scenarios = ScenarioList([Scenario({"options": ["a", "b"]}), Scenario({"options": []})])
results = q.by(scenarios).by(Model("test", canned_response="a")).run()

value = sorted(results.select("q").to_list(), key=str)
