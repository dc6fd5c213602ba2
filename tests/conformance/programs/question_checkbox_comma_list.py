"""Selections without brackets, as the instructions of EDSL ask for."""

from edsl import Model, QuestionCheckBox

q = QuestionCheckBox(question_name="drinks", question_text="Which?", question_options=["tea", "milk", "juice"])
results = q.by(Model("test", canned_response="tea, juice")).run()

value = results.select("answer.drinks").to_list()
