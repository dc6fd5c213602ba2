"""Verbs after each other, as one writes them."""

from edsl import AgentList, Model, QuestionNumerical

q = QuestionNumerical(question_name="q", question_text="How many?")
results = q.by(AgentList.from_list("age", [20, 40, 30])).by(Model("test", canned_response="7")).run()

value = (
    results.filter("age >= 30")
    .mutate("score = q * age")
    .order_by("score", reverse=True)
    .select("agent.age", "score")
    .to_list()
)
