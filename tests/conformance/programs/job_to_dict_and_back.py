"""A whole study as a dict, and made from one."""

import json

from edsl import AgentList, Jobs, Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
job = q.by(AgentList.from_list("age", [20, 30])).by(ScenarioList.from_list("city", ["Oslo", "Lima"]))
job = job.by(Model("test", canned_response="nice"))
again = Jobs.from_dict(json.loads(json.dumps(job.to_dict())))

value = [len(again), sorted(again.run().select("agent.age", "scenario.city", "q").to_list())]
