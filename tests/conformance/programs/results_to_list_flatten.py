"""Lists in a column, one after the other."""

from edsl import AgentList, Model, QuestionList

q = QuestionList(question_name="foods", question_text="Which foods?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response='["bread", "cheese"]')).run()

value = [results.select("foods").to_list(), results.select("foods").to_list(flatten=True)]
