"""One answer for each question, by its name."""

from edsl import Model, QuestionFreeText, QuestionMultipleChoice, QuestionNumerical, Survey

name = QuestionFreeText(question_name="name", question_text="What is your name?")
mood = QuestionMultipleChoice(question_name="mood", question_text="How are you?", question_options=["Good", "Bad"])
age = QuestionNumerical(question_name="age", question_text="How old are you?")
survey = Survey(questions=[name, mood, age])
results = survey.by(Model("test", canned_response={"name": "Ada", "mood": "Good", "age": "36"})).run()

value = [survey.question_names, results.select("answer.*").to_dicts()]
