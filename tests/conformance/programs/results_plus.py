"""Results of two runs as one."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
model = Model("test", canned_response="fine")
one = q.by(AgentList.from_list("age", [20, 30])).by(model).run()
two = q.by(AgentList.from_list("age", [40])).by(model).run()
both = one + two

value = [len(both), sorted(both.select("agent.age").to_list())]
