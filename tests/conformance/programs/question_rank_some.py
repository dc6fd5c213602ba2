"""The best two, by the options' numbers."""

from edsl import Model, QuestionRank

q = QuestionRank(
    question_name="pets",
    question_text="Which two do you like best?",
    question_options=["cat", "dog", "fish", "bird"],
    num_selections=2,
)
results = q.by(Model("test", canned_response="[3, 0]")).run()

value = results.select("pets").to_list()
