"""One survey with most kinds in it."""

from edsl import (
    Model,
    QuestionBudget,
    QuestionCheckBox,
    QuestionDict,
    QuestionFreeText,
    QuestionLinearScale,
    QuestionList,
    QuestionMatrix,
    QuestionMultipleChoice,
    QuestionNumerical,
    QuestionRank,
    QuestionYesNo,
    Survey,
)

survey = Survey(
    [
        QuestionFreeText(question_name="text", question_text="Say something."),
        QuestionYesNo(question_name="yes", question_text="Yes?"),
        QuestionMultipleChoice(question_name="one", question_text="Which?", question_options=["a", "b"]),
        QuestionCheckBox(question_name="some", question_text="Which?", question_options=["a", "b", "c"]),
        QuestionLinearScale(question_name="scale", question_text="How much?", question_options=[1, 2, 3]),
        QuestionNumerical(question_name="number", question_text="How many?"),
        QuestionList(question_name="items", question_text="Which?"),
        QuestionRank(question_name="order", question_text="Rank.", question_options=["a", "b"]),
        QuestionBudget(question_name="money", question_text="Spend.", question_options=["a", "b"], budget_sum=10),
        QuestionMatrix(
            question_name="grid", question_text="Grade.", question_items=["x", "y"], question_options=["low", "high"]
        ),
        QuestionDict(question_name="parts", question_text="Parts.", answer_keys=["k"], value_types=["int"]),
    ]
)
answers = {
    "text": "hello",
    "yes": "Yes",
    "one": "b",
    "some": '["a", "c"]',
    "scale": "2",
    "number": "3.5",
    "items": '["p", "q"]',
    "order": "[1, 0]",
    "money": "[4, 6]",
    "grid": '{"x": "low", "y": "high"}',
    "parts": '{"k": 5}',
}
results = survey.by(Model("test", canned_response=answers)).run()

value = results.select("answer.*").to_dicts()
