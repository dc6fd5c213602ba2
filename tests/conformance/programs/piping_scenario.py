"""Fields of the scenario in the text."""

from edsl import Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.city }}?")
results = q.by(ScenarioList.from_list("city", ["Oslo", "Lima"])).by(Model("test", canned_response="nice")).run()

value = results.select("scenario.city", "q", "question_text.q_question_text").to_list()
