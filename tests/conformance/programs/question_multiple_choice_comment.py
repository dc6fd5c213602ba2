"""What follows in the next line is the comment."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(
    question_name="color", question_text="Which color do you like best?", question_options=["Red", "Green", "Blue"]
)
results = q.by(Model("test", canned_response="Blue\nIt is the color of the sea.")).run()

value = results.select("answer.color", "comment.color_comment").to_list()
