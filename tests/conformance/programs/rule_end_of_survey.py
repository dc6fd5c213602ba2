"""EndOfSurvey as the place to go to."""

from edsl import EndOfSurvey, Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
wish = QuestionFreeText(question_name="wish", question_text="What do you wish?")
survey = Survey([pet, kind, wish]).add_rule("pet", "pet == 'No'", EndOfSurvey)
model = Model("test", canned_response={"pet": "No", "kind": "a cat", "wish": "peace"})

value = survey.by(model).run().select("pet", "kind", "wish").to_list()
