"""Models like to put a fence around JSON."""

from edsl import Model, QuestionDict, QuestionList, Survey

fence = chr(96) * 3
answers = {
    "foods": fence + 'json\n["bread", "cheese"]\n' + fence,
    "person": fence + 'json\n{"name": "Ada", "age": 36}\n' + fence,
}
foods = QuestionList(question_name="foods", question_text="Which foods?")
person = QuestionDict(
    question_name="person", question_text="Who?", answer_keys=["name", "age"], value_types=["str", "int"]
)
results = Survey([foods, person]).by(Model("test", canned_response=answers)).run()

value = results.select("foods", "person").to_list()
