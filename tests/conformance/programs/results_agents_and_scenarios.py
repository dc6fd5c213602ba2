"""Agents, scenarios and models of the results, as lists."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(AgentList.from_list("age", [20, 30])).by(ScenarioList.from_list("city", ["Oslo"]))
results = job.by(Model("test", canned_response="x")).run()

value = [[agent.traits["age"] for agent in results.agents], [scenario["city"] for scenario in results.scenarios]]
