"""An answer with named parts."""

from edsl import Model, QuestionDict

q = QuestionDict(
    question_name="recipe",
    question_text="Please draft a recipe for hot chocolate.",
    answer_keys=["title", "ingredients", "minutes"],
    value_types=["str", "list[str]", "int"],
)
answer = '{"title": "Cocoa", "ingredients": ["milk", "cocoa"], "minutes": 5}'
results = q.by(Model("test", canned_response=answer)).run()

value = results.select("recipe").to_list()
