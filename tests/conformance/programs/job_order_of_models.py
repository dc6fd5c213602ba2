"""The order of results with several models."""

from edsl import AgentList, Model, ModelList, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
agents = AgentList.from_list("age", [20, 30])
cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
models = ModelList([Model("test", canned_response="x", temperature=heat) for heat in (0.1, 0.9)])
results = q.by(agents).by(cities).by(models).run()

value = results.select("agent.age", "scenario.city", "model.temperature").to_list()
