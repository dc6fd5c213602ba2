"""One item of an answer that is a list."""

from edsl import Model, QuestionFreeText, QuestionList, Survey

a = QuestionList(question_name="cities", question_text="Where have you lived?")
b = QuestionFreeText(question_name="why", question_text="Why {{ cities.answer[0] }} and not {{ cities.answer[1] }}?")
results = Survey([a, b]).by(Model("test", canned_response={"cities": '["Oslo", "Lima"]', "why": "snow"})).run()

value = "Why Oslo and not Lima?" in str(results.select("prompt.why_user_prompt").to_list()[0])
