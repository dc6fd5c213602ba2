"""Something that was looked for and is not there."""

from edsl import Model, QuestionExtract

q = QuestionExtract(
    question_name="person", question_text="My name is Ada.", answer_template={"name": "John Doe", "job": "Carpenter"}
)
results = q.by(Model("test", canned_response='{"name": "Ada", "job": null}')).run()

value = results.select("person").to_list()
