"""Rules go on to hold where a jump has landed."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

a = QuestionYesNo(question_name="a", question_text="A?")
b = QuestionFreeText(question_name="b", question_text="B?")
c = QuestionYesNo(question_name="c", question_text="C?")
d = QuestionFreeText(question_name="d", question_text="D?")
e = QuestionFreeText(question_name="e", question_text="E?")
survey = Survey([a, b, c, d, e]).add_rule("a", "a == 'Yes'", "c").add_rule("c", "c == 'Yes'", "e")
results = survey.by(Model("test", canned_response={"a": "Yes", "b": "b", "c": "Yes", "d": "d", "e": "e"})).run()

value = results.select("a", "b", "c", "d", "e").to_list()
