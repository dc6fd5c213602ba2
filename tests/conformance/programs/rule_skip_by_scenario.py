"""A skip rule may look at the scenario."""

from edsl import Model, QuestionFreeText, ScenarioList, Survey

hello = QuestionFreeText(question_name="hello", question_text="Hello {{ scenario.city }}?")
sea = QuestionFreeText(question_name="sea", question_text="How is the sea?")
survey = Survey([hello, sea]).add_skip_rule("sea", "{{ scenario.city }} == 'Bern'")
scenarios = ScenarioList.from_list("city", ["Bern", "Oslo"])
results = survey.by(scenarios).by(Model("test", canned_response="fine")).run()

value = results.select("scenario.city", "hello", "sea").to_list()
