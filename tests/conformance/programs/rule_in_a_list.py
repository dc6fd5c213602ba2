"""Rules over answers that are lists, and texts that hold others."""

from edsl import Model, QuestionCheckBox, QuestionFreeText, Survey

pets = QuestionCheckBox(question_name="pets", question_text="Which?", question_options=["cat", "dog", "fish"])
walk = QuestionFreeText(question_name="walk", question_text="How often do you walk it?")
tank = QuestionFreeText(question_name="tank", question_text="How large is the tank?")
survey = (
    Survey([pets, walk, tank])
    .add_skip_rule("walk", "'dog' not in {{ pets.answer }}")
    .add_skip_rule("tank", "'fish' not in {{ pets.answer }}")
)
results = survey.by(Model("test", canned_response={"pets": '["fish"]', "walk": "daily", "tank": "small"})).run()

value = results.select("pets", "walk", "tank").to_list()
