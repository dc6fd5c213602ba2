"""One answer that is not valid: the others stay, and it is None."""

from edsl import AgentList, Model, QuestionNumerical, QuestionYesNo, Survey

a = QuestionYesNo(question_name="a", question_text="Yes?")
b = QuestionNumerical(question_name="b", question_text="How many?", max_value=10)
results = (
    Survey([a, b]).by(AgentList.from_list("age", [20])).by(Model("test", canned_response={"a": "Yes", "b": "99"})).run()
)

value = [len(results), results.select("a", "b").to_list()]
