"""The places of agent, scenario and model in their lists."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(AgentList.from_list("age", [20, 30])).by(ScenarioList.from_list("city", ["Oslo", "Lima"]))
results = job.by(Model("test", canned_response="x")).run()

value = sorted(results.select("agent.agent_index", "scenario.scenario_index", "agent.age", "scenario.city").to_list())
