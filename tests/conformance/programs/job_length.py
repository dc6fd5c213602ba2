"""How many interviews a job has, before any is run."""

from edsl import AgentList, Jobs, Model, QuestionFreeText, ScenarioList, Survey

q = QuestionFreeText(question_name="q", question_text="{{ scenario.city }}?")
job = Survey([q]).by(AgentList.from_list("age", [20, 30])).by(ScenarioList.from_list("city", ["Oslo", "Lima", "Bern"]))
job = job.by(Model("test"))

value = [len(job), job.num_interviews, isinstance(job, Jobs)]
