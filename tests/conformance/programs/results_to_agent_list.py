"""Answers become the traits of the next agents."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()
agents = results.select("agent.age", "answer.q").to_agent_list()

value = [type(agents).__name__, [dict(agent.traits) for agent in agents]]
