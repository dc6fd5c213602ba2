"""The order in which results stand: agents, then scenarios."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
agents = AgentList.from_list("age", [20, 30])
cities = ScenarioList.from_list("city", ["Oslo", "Lima"])
results = q.by(agents).by(cities).by(Model("test", canned_response="nice")).run()

value = results.select("agent.age", "scenario.city").to_list()
