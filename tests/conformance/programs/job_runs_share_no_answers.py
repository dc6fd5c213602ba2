"""The same question asked of another test model gets that model's answer."""

from edsl import Cache, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
cache = Cache()
one = q.by(Model("test", canned_response="fine")).run(cache=cache)
two = q.by(Model("test", canned_response="bad")).run(cache=cache)

value = [one.select("q").to_list(), two.select("q").to_list()]
