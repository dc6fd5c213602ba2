"""Where the second answers stand."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="nice")).run(n=2)

value = results.select("agent.age", "iteration.iteration").to_list()
