"""Rows in order of a column, and the other way round."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [30, 20, 40])).by(Model("test", canned_response="fine")).run()

value = [
    results.order_by("agent.age").select("agent.age").to_list(),
    results.order_by("agent.age", reverse=True).select("agent.age").to_list(),
    results.sort_by("agent.age").select("agent.age").to_list(),
]
