"""Columns by their full and by their bare names; one is a list, several are tuples."""

from edsl import Agent, Model, QuestionFreeText, QuestionYesNo, Survey

a = QuestionFreeText(question_name="a", question_text="A?")
b = QuestionYesNo(question_name="b", question_text="B?")
results = Survey([a, b]).by(Agent(traits={"age": 20})).by(Model("test", canned_response={"a": "x", "b": "Yes"})).run()

value = [
    results.select("a").to_list(),
    results.select("answer.a", "b", "age").to_list(),
    results.select("answer.*").to_list(),
    results.select("agent.age", "answer.b").relevant_columns(),
]
