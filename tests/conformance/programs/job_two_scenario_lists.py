"""A second scenario list crosses with the first."""

from edsl import Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="{{ scenario.food }} in {{ scenario.city }}?")
cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
foods = ScenarioList.from_list("food", ["rice", "fish"])
results = q.by(cities).by(foods).by(Model("test", canned_response="nice")).run()

value = [len(results), sorted(results.select("scenario.city", "scenario.food").to_list())]
