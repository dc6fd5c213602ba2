"""An answer and its comment in a JSON object."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(question_name="color", question_text="Which?", question_options=["red", "blue"])
results = q.by(Model("test", canned_response='{"answer": "blue", "comment": "like the sea"}')).run()

value = results.select("answer.color", "comment.color_comment").to_list()
