"""A number out of a list of numbers."""

from edsl import Model, QuestionLinearScale

q = QuestionLinearScale(
    question_name="hunger",
    question_text="How hungry are you?",
    question_options=[0, 1, 2, 3, 4, 5],
    option_labels={0: "Not at all", 5: "Very"},
)
results = q.by(Model("test", canned_response="4\nI had no breakfast.")).run()

value = results.select("hunger", "comment.hunger_comment").to_list()
