"""The same options for several items."""

from edsl import Model, QuestionMatrix

q = QuestionMatrix(
    question_name="parks",
    question_text="How do you like these?",
    question_items=["trees", "benches"],
    question_options=[1, 2, 3],
    option_labels={1: "not at all", 3: "very much"},
)
results = q.by(Model("test", canned_response='{"trees": 3, "benches": 1}')).run()

value = results.select("parks").to_list()
