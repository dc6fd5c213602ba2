"""Tokens and cost are numbers."""

from edsl import Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(Model("test", canned_response="fine")).run()
names = ["q_input_tokens", "q_output_tokens", "q_cost"]

value = [isinstance(results.select(f"raw_model_response.{name}").to_list()[0], (int, float)) for name in names]
