"""What was skipped is not remembered."""

from edsl import Model, QuestionFreeText, QuestionYesNo, Survey

pet = QuestionYesNo(question_name="pet", question_text="Do you have a pet?")
kind = QuestionFreeText(question_name="kind", question_text="Which pet is it?")
wish = QuestionFreeText(question_name="wish", question_text="What do you wish?")
survey = Survey([pet, kind, wish]).add_skip_rule("kind", "pet == 'No'").set_full_memory_mode()
results = survey.by(Model("test", canned_response={"pet": "No", "kind": "a cat", "wish": "peace"})).run()
prompt = str(results.select("prompt.wish_user_prompt").to_list()[0])

value = ["Do you have a pet?" in prompt, "a cat" in prompt, results.select("pet", "kind", "wish").to_list()]
