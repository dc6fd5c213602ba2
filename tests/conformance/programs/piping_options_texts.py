"""Each option may be a template."""

from edsl import Model, QuestionFreeText, QuestionMultipleChoice, Survey

a = QuestionFreeText(question_name="city", question_text="Where do you live?")
b = QuestionMultipleChoice(
    question_name="stay", question_text="What next?", question_options=["stay in {{ city.answer }}", "leave"]
)
results = Survey([a, b]).by(Model("test", canned_response={"city": "Oslo", "stay": "stay in Oslo"})).run()

value = results.select("city", "stay").to_list()
