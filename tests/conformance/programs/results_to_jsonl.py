"""Rows as lines of JSON."""

import json

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()
rows = results.select("agent.age", "answer.q").to_dicts(remove_prefix=False)

value = [json.loads(json.dumps(row)) for row in rows]
