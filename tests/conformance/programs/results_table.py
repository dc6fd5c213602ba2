"""A table of some columns can be shown."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="splendid")).run()
text = str(results.select("agent.age", "answer.q").table())

value = ["splendid" in text, "answer.q" in text]
