"""An earlier answer in a later question."""

from edsl import Model, QuestionFreeText, Survey

a = QuestionFreeText(question_name="city", question_text="Where do you live?")
b = QuestionFreeText(question_name="why", question_text="Why {{ city.answer }}?")
results = Survey([a, b]).by(Model("test", canned_response={"city": "Oslo", "why": "snow"})).run()

value = [
    results.select("city", "why").to_list(),
    "Why Oslo?" in str(results.select("prompt.why_user_prompt").to_list()[0]),
    results.select("question_text.why_question_text").to_list(),
]
