"""An agent list, a scenario list and a model in one call."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
agents = AgentList.from_list("age", [20, 30])
cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
results = q.by(agents, cities, Model("test", canned_response="nice")).run()

value = sorted(results.select("agent.age", "scenario.city", "q").to_list())
