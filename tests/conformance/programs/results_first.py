"""The first of a column, and the first result."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()

value = [results.select("q").first(), results.select("agent.age").first()]
