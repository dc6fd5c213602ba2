"""Selections, and a comment in the next line."""

from edsl import Model, QuestionCheckBox

q = QuestionCheckBox(question_name="drinks", question_text="Which?", question_options=["tea", "milk", "juice"])
results = q.by(Model("test", canned_response='["tea", "juice"]\nMornings and evenings.')).run()

value = results.select("answer.drinks", "comment.drinks_comment").to_list()
