"""Exactly so many of the options."""

from edsl import Model, QuestionTopK

q = QuestionTopK(
    question_name="seasons",
    question_text="Which two seasons do you like best?",
    question_options=["spring", "summer", "autumn", "winter"],
    min_selections=2,
    max_selections=2,
)
value = []
for answer in ("[0, 2]", "[0]", "[0, 1, 2]"):
    value.append(q.by(Model("test", canned_response=answer)).run().select("seasons").to_list())
