"""Of two rules that hold, the one that was added last decides."""

from edsl import Model, QuestionFreeText, QuestionNumerical, Survey

age = QuestionNumerical(question_name="age", question_text="How old are you?")
b, c, d = (QuestionFreeText(question_name=name, question_text=name.upper()) for name in "bcd")
survey = Survey([age, b, c, d]).add_rule("age", "age > 10", "c").add_rule("age", "age > 20", "d")

value = []
for answer in ("5", "15", "25"):
    model = Model("test", canned_response={"age": answer, "b": "b", "c": "c", "d": "d"})
    value.append(survey.by(model).run().select("age", "b", "c", "d").to_list())
