"""The options of a question come from the scenario."""

from edsl import Model, QuestionMultipleChoice, Scenario, ScenarioList

q = QuestionMultipleChoice(
    question_name="pick", question_text="Which {{ scenario.what }}?", question_options="{{ scenario.options }}"
)
scenarios = ScenarioList(
    [
        Scenario({"what": "color", "options": ["red", "blue", "green"]}),
        Scenario({"what": "shade", "options": ["light", "dark", "green"]}),
    ]
)
results = q.by(scenarios).by(Model("test", canned_response="green")).run()

value = results.select("scenario.what", "pick", "question_options.pick_question_options").to_list()
