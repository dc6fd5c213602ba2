"""A study in two steps: what the first finds is what the second asks about."""

from edsl import Model, QuestionFreeText, QuestionList, ScenarioList

first = QuestionList(question_name="topics", question_text="What matters to you?", max_list_items=3)
topics = first.by(Model("test", canned_response='["work", "home"]')).run().select("topics").to_list()[0]
second = QuestionFreeText(question_name="why", question_text="Why does {{ scenario.topic }} matter?")
results = second.by(ScenarioList.from_list("topic", topics)).by(Model("test", canned_response="so")).run()

value = results.select("topic", "why").to_list()
