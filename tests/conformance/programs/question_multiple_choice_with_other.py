"""The respondent may name something that is not in the list."""

from edsl import Model, QuestionMultipleChoiceWithOther

q = QuestionMultipleChoiceWithOther(
    question_name="fruit", question_text="Which fruit do you like best?", question_options=["Apple", "Pear"]
)
given = q.by(Model("test", canned_response="Apple")).run()
other = q.by(Model("test", canned_response="Other: Mango")).run()

value = [given.select("fruit").to_list(), other.select("fruit").to_list()]
