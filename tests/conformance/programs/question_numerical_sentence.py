"""The number in a sentence around it."""

from edsl import Model, QuestionNumerical

q = QuestionNumerical(question_name="age", question_text="How old are you?")
results = q.by(Model("test", canned_response="I am 42 years old.")).run()

value = results.select("age").to_list()
