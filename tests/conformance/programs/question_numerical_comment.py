"""A number, and why."""

from edsl import Model, QuestionNumerical

q = QuestionNumerical(question_name="age", question_text="How old are you?")
results = q.by(Model("test", canned_response="42\nMy birthday was in May.")).run()

value = results.select("answer.age", "comment.age_comment").to_list()
