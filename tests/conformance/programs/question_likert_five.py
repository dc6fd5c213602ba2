"""Five grades of agreement, named by the question itself."""

from edsl import Model, QuestionLikertFive

q = QuestionLikertFive(question_name="rain", question_text="I like rain.")
results = q.by(Model("test", canned_response="Agree")).run()

value = [results.select("rain").to_list(), q.question_options]
