"""Other names for selected columns."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [30, 20])).by(Model("test", canned_response="fine")).run()
table = results.select("agent.age", "answer.q").rename({"agent.age": "years"})

value = [table.to_dicts(remove_prefix=False), table.relevant_columns()]
