"""n asks everyone so many times."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run(n=3)

value = [len(results), sorted(results.select("agent.age", "iteration.iteration").to_list())]
