"""The other spelling of a condition."""

from edsl import AgentList, Model, QuestionNumerical

q = QuestionNumerical(question_name="q", question_text="How many?")
results = q.by(AgentList.from_list("age", [20, 30, 40])).by(Model("test", canned_response="7")).run()

value = results.filter("{{ agent.age }} > 25 and {{ answer.q }} == 7").select("agent.age").to_list()
