"""All options in order of preference, by their numbers."""

from edsl import Model, QuestionRank

q = QuestionRank(question_name="pets", question_text="Rank these pets.", question_options=["cat", "dog", "fish"])
results = q.by(Model("test", canned_response="[1, 0, 2]")).run()

value = results.select("pets").to_list()
