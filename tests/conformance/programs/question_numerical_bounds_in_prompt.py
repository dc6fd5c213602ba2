"""The prompt names the bounds, zero too."""

from edsl import Model, QuestionNumerical


def prompt_with(**bounds):
    q = QuestionNumerical(question_name="age", question_text="What is your age?", **bounds)
    results = q.by(Model("test", canned_response="7")).run()
    return str(results.select("prompt.age_user_prompt").to_list()[0])


value = [prompt_with(min_value=0) != prompt_with(), prompt_with(min_value=5) != prompt_with()]
