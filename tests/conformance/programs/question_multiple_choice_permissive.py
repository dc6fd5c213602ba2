"""A permissive question takes an answer that is none of its options."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color",
    question_text="Which color do you like best?",
    question_options=["Red", "Green", "Blue"],
    permissive=True,
)
results = q.by(Model("test", canned_response="Purple")).run()

value = results.select("color").to_list()
