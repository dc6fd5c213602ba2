"""A list of texts."""

from edsl import Model, QuestionList

q = QuestionList(question_name="foods", question_text="Which foods do you like?")
results = q.by(Model("test", canned_response='["bread", "cheese"]')).run()

value = results.select("foods").to_list()
