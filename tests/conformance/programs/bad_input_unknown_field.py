"""A field that no scenario has is found out before anything is asked."""

from edsl import Model, QuestionFreeText, Scenario

q = QuestionFreeText(question_name="q", question_text="What about {{ scenario.citty }}?")
try:
    results = q.by(Scenario({"city": "Oslo"})).by(Model("test", canned_response="nice")).run()
    value = results.select("q").to_list()
except Exception:
    value = "refused"
