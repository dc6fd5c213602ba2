"""A field whose name has a space."""

from edsl import Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="Sum up: {{ scenario['Review Text'] }}")
results = q.by(Scenario({"Review Text": "a fine lamp"})).by(Model("test", canned_response="lamp")).run()
prompt = str(results.select("prompt.q_user_prompt").to_list()[0])

value = ["Sum up: a fine lamp" in prompt, results.select("q").to_list()]
