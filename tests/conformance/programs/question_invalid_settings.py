"""A question that could never be asked is refused when it is made."""

from edsl import QuestionCheckBox, QuestionMultipleChoice, QuestionNumerical, QuestionRank

made = [
    lambda: QuestionMultipleChoice(question_name="q", question_text="?", question_options=[]),
    lambda: QuestionMultipleChoice(question_name="q", question_text="?", question_options=["a", "a"]),
    lambda: QuestionMultipleChoice(question_name="not a name", question_text="?", question_options=["a", "b"]),
    lambda: QuestionNumerical(question_name="q", question_text="?", min_value=10, max_value=1),
    lambda: QuestionCheckBox(question_name="q", question_text="?", question_options=["a", "b"], min_selections=3),
    lambda: QuestionRank(question_name="q", question_text="?", question_options=["a", "b"], num_selections=5),
]
value = []
for make in made:
    try:
        make()
        value.append("made")
    except Exception:
        value.append("refused")
