"""A column without the answers that were skipped."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
survey = Survey([pet, kind]).add_skip_rule("kind", "pet == 'No'")
results = survey.by(Model("test", canned_response={"pet": "No", "kind": "cat"})).run()

value = [results.select("kind").to_list(), results.select("kind").to_list(remove_none=True)]
