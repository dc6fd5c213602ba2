"""Parts of a text, by a template of what is looked for."""

from edsl import Model, QuestionExtract

q = QuestionExtract(
    question_name="person",
    question_text="My name is Ada. I am a mathematician.",
    answer_template={"name": "John Doe", "profession": "Carpenter"},
)
results = q.by(Model("test", canned_response='{"name": "Ada", "profession": "Mathematician"}')).run()

value = results.select("person").to_list()
