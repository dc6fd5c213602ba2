"""Below the least and above the greatest value there is no answer."""

from edsl import Model, QuestionNumerical

q = QuestionNumerical(question_name="age", question_text="How old are you?", min_value=0, max_value=120)
value = []
for answer in ("-1", "0", "120", "121"):
    value.append(q.by(Model("test", canned_response=answer)).run().select("age").to_list())
