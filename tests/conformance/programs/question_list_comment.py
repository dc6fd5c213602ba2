"""A list, and a comment in the next line."""

from edsl import Model, QuestionList

q = QuestionList(question_name="foods", question_text="Which foods do you like?")
results = q.by(Model("test", canned_response='["bread", "cheese"]\nI am easily pleased.')).run()

value = results.select("answer.foods", "comment.foods_comment").to_list()
