"""What looks like a template in an answer or a scenario is only text."""

from edsl import Model, QuestionFreeText, Scenario, Survey

a = QuestionFreeText(question_name="a", question_text="Repeat: {{ scenario.text }}")
b = QuestionFreeText(question_name="b", question_text="You said {{ a.answer }}.")
job = Survey([a, b]).by(Scenario({"text": "plain"})).by(Model("test", canned_response={"a": "{{ 7 * 6 }}", "b": "x"}))
results = job.run()

value = ["42" in str(results.select("prompt.b_user_prompt").to_list()[0]), results.select("a").to_list()]
