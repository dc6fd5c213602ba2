"""A rule that holds jumps over questions; they have no answer."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
wish = QuestionFreeText(question_name="wish", question_text="What do you wish?")
survey = Survey([pet, kind, wish]).add_rule("pet", "pet == 'No'", "wish")

value = []
for answer in ("Yes", "No"):
    model = Model("test", canned_response={"pet": answer, "kind": "a cat", "wish": "peace"})
    value.append(survey.by(model).run().select("pet", "kind", "wish").to_list())
