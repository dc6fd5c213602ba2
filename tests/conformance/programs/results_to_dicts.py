"""Rows as dicts, with and without the prefix of their names."""

from edsl import Agent, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Agent(traits={"age": 20})).by(Model("test", canned_response="fine")).run()
table = results.select("agent.age", "answer.q")

value = [table.to_dicts(), table.to_dicts(remove_prefix=False)]
