"""One question for each scenario, its name a template."""

from edsl import Model, QuestionYesNo, ScenarioList, Survey

q = QuestionYesNo(question_name="likes_{{ scenario.food }}", question_text="Do you like {{ scenario.food }}?")
questions = q.loop(ScenarioList.from_list("food", ["rice", "bread"]))
survey = Survey(questions)
results = survey.by(Model("test", canned_response={"likes_rice": "Yes", "likes_bread": "No"})).run()

value = [survey.question_names, [q.question_text for q in questions], results.select("answer.*").to_dicts()]
