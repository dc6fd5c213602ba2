"""With use_code the model answers with an option's number."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color",
    question_text="Which color do you like best?",
    question_options=["Red", "Green", "Blue"],
    use_code=True,
)
results = q.by(Model("test", canned_response="2")).run()

value = results.select("color").to_list()
