"""A stop rule in the other spelling, on a later question."""

from edsl import Model, QuestionFreeText, QuestionMultipleChoice, QuestionNumerical, Survey

job = QuestionMultipleChoice(question_name="job", question_text="Job?", question_options=["cook", "clerk"])
years = QuestionNumerical(question_name="years", question_text="For how long?")
why = QuestionFreeText(question_name="why", question_text="Why?")
survey = Survey([job, years, why]).add_stop_rule(years, "{{ years.answer }} < 2")
results = survey.by(Model("test", canned_response={"job": "cook", "years": "1", "why": "x"})).run()

value = results.select("job", "years", "why").to_list()
