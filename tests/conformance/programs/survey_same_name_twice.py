"""Two questions cannot have one name."""

from edsl import QuestionYesNo, Survey

a = QuestionYesNo(question_name="a", question_text="One?")
again = QuestionYesNo(question_name="a", question_text="Two?")
try:
    Survey([a, again])
    value = "made"
except Exception:
    value = "refused"
