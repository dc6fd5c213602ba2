"""A second agent list crosses with the first: traits are joined."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
ages = AgentList.from_list("age", [20, 30])
jobs = AgentList.from_list("job", ["cook", "clerk"])
results = q.by(ages).by(jobs).by(Model("test", canned_response="fine")).run()

value = sorted(results.select("agent.age", "agent.job").to_list())
