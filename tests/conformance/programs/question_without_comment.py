"""include_comment=False asks for none."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color", question_text="Which color?", question_options=["Red", "Blue"], include_comment=False
)
results = q.by(Model("test", canned_response="Red")).run()

value = [results.select("color").to_list(), results.select("comment.color_comment").to_list()]
