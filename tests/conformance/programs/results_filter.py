"""Rows that a condition holds for."""

from edsl import AgentList, Model, QuestionNumerical

q = QuestionNumerical(question_name="q", question_text="How many?")
results = q.by(AgentList.from_list("age", [20, 30, 40])).by(Model("test", canned_response="7")).run()

value = [
    results.filter("agent.age > 25").select("agent.age").to_list(),
    results.filter("age > 25 and q == 7").select("age").to_list(),
    len(results.filter("answer.q > 10")),
]
