"""A survey as a dict, and made from one; rules stay."""

import json

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which?")
survey = Survey([pet, kind]).add_skip_rule("kind", "pet == 'No'")
again = Survey.from_dict(json.loads(json.dumps(survey.to_dict())))
results = again.by(Model("test", canned_response={"pet": "No", "kind": "a cat"})).run()

value = [again.question_names, again.to_dict() == survey.to_dict(), results.select("pet", "kind").to_list()]
