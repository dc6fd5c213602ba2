"""A sum that is divided among the options."""

from edsl import Model, QuestionBudget

q = QuestionBudget(
    question_name="money",
    question_text="How would you spend 100 dollars?",
    question_options=["food", "rent", "fun"],
    budget_sum=100,
)
results = q.by(Model("test", canned_response="[30, 50, 20]")).run()

value = results.select("money").to_list()
