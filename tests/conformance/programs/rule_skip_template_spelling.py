"""Skip rules in the other spelling, with and."""

from edsl import Model, QuestionFreeText, QuestionNumerical, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
age = QuestionNumerical(question_name="age", question_text="How old are you?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
survey = Survey([pet, age, kind]).add_skip_rule(kind, "{{ pet.answer }} == 'No' and {{ age.answer }} > 30")

value = []
for age_answer in ("20", "40"):
    model = Model("test", canned_response={"pet": "No", "age": age_answer, "kind": "a cat"})
    value.append(survey.by(model).run().select("pet", "age", "kind").to_list())
