"""A column that is computed."""

from edsl import AgentList, Model, QuestionNumerical

q = QuestionNumerical(question_name="scale", question_text="How many?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="7")).run()
results = results.mutate("double = scale * 2").mutate("sum = double + age")

value = results.select("scale", "double", "sum").to_list()
