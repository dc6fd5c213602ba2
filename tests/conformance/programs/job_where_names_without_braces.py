"""The other spelling of the same condition."""

from edsl import AgentList, Model, QuestionFreeText, ScenarioList, Survey

q = QuestionFreeText(question_name="q", question_text="Is {{ scenario.drink }} good?")
job = Survey([q]).by(AgentList.from_list("age", [10, 40])).by(ScenarioList.from_list("drink", ["milk", "wine"]))
job = job.by(Model("test", canned_response="yes")).where("agent.age > 18")
results = job.run()

value = sorted(results.select("agent.age", "scenario.drink").to_list())
