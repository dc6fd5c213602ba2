"""SQL over the results, with bare names."""

from edsl import AgentList, Model, QuestionNumerical

q = QuestionNumerical(question_name="q", question_text="How many?")
results = q.by(AgentList.from_list("age", [20, 30, 40])).by(Model("test", canned_response="7")).run()
table = results.sql("select age, q from self where age > 25 order by age")

value = [[int(row["age"]), int(row["q"])] for row in table.to_dicts()]
