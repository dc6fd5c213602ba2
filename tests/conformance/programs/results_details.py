"""What a model really sent, what was read out of it, and whether it was valid."""

from edsl import Model, QuestionMultipleChoice

q = QuestionMultipleChoice(question_name="q", question_text="Which?", question_options=["red", "blue"])
results = q.by(Model("test", canned_response="blue\nlike the sea")).run()

value = [
    results.select("generated_tokens.q_generated_tokens").to_list(),
    "blue" in str(results.select("raw_model_response.q_raw_model_response").to_list()[0]),
    results.select("validated.q_validated").to_list(),
    results.select("cache_used.q_cache_used").to_list(),
    results.select("question_type.q_question_type").to_list(),
    results.select("reasoning_summary.q_reasoning_summary").to_list(),
]
