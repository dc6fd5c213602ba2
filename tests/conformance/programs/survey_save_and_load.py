"""A survey in a file."""

from edsl import QuestionNumerical, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
age = QuestionNumerical(question_name="age", question_text="How old is it?", max_value=30)
Survey([pet, age]).save("pets")
again = Survey.load("pets")

value = [again.question_names, again["age"].max_value]
