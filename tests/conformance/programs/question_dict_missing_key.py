"""A part that is missing makes it no answer."""

from edsl import Model, QuestionDict

q = QuestionDict(
    question_name="recipe",
    question_text="Please draft a recipe.",
    answer_keys=["title", "minutes"],
    value_types=["str", "int"],
)
results = q.by(Model("test", canned_response='{"title": "Cocoa"}')).run()

value = results.select("recipe").to_list()
