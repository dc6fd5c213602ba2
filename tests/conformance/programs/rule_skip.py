"""A skip rule is looked at before its question."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
wish = QuestionFreeText(question_name="wish", question_text="What do you wish?")
survey = Survey([pet, kind, wish]).add_skip_rule("kind", "pet == 'No'")

value = []
for answer in ("Yes", "No"):
    model = Model("test", canned_response={"pet": answer, "kind": "a cat", "wish": "peace"})
    value.append(survey.by(model).run().select("pet", "kind", "wish").to_list())
