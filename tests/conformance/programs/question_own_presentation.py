"""question_presentation stands in the place of the question's text."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color",
    question_text="Which color?",
    question_options=["Red", "Blue"],
    question_presentation="Please look at these: {{ question_options }}",
)
results = q.by(Model("test", canned_response="Red")).run()
prompt = str(results.select("prompt.color_user_prompt").to_list()[0])

value = ["Please look at these" in prompt, "Which color?" in prompt, results.select("color").to_list()]
