"""A field's bare name, without its group."""

from edsl import Model, QuestionFreeText, ScenarioList

q = QuestionFreeText(question_name="q", question_text="What about {{ city }}?")
results = q.by(ScenarioList.from_list("city", ["Oslo", "Lima"])).by(Model("test", canned_response="nice")).run()
prompts = [str(prompt) for prompt in results.select("prompt.q_user_prompt").to_list()]

value = ["What about Oslo?" in prompts[0], "What about Lima?" in prompts[1]]
