"""All options in order of preference, by their texts."""

from edsl import Model, QuestionRank

q = QuestionRank(
    question_name="pets", question_text="Rank these pets.", question_options=["cat", "dog", "fish"], use_code=False
)
results = q.by(Model("test", canned_response='["dog", "cat", "fish"]')).run()

value = results.select("pets").to_list()
