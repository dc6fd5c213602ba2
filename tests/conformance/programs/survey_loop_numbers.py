"""Looped questions without a template in their name are numbered."""

from edsl import QuestionYesNo, ScenarioList

q = QuestionYesNo(question_name="likes", question_text="Do you like {{ scenario.food }}?")
questions = q.loop(ScenarioList.from_list("food", ["rice", "bread", "beans"]))

value = [[q.question_name, q.question_text] for q in questions]
