"""A loop over scenarios with a template in text and options."""

from edsl import QuestionMultipleChoice, ScenarioList

q = QuestionMultipleChoice(
    question_name="q_{{ scenario.n }}",
    question_text="Is {{ scenario.n }} a prime?",
    question_options=["{{ scenario.n }} is", "no"],
)
questions = q.loop(ScenarioList.from_list("n", [2, 4]))

value = [[q.question_name, q.question_text, q.question_options] for q in questions]
