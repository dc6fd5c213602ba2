"""Whole numbers stay whole, others keep their fraction."""

from edsl import Model, QuestionNumerical

q = QuestionNumerical(question_name="age", question_text="How old are you?")
value = []
for answer in ("42", "36.5", "1,200"):
    value.append(q.by(Model("test", canned_response=answer)).run().select("age").to_list())
