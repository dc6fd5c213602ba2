"""One of the options."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color", question_text="Which color do you like best?", question_options=["Red", "Green", "Blue"]
)
results = q.by(Model("test", canned_response="Green")).run()

value = results.select("color").to_list()
