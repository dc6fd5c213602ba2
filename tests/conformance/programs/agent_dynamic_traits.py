"""Traits that depend on the question."""

from edsl import Agent, Model, QuestionFreeText, Survey


def traits(question):
    return {"age": 10} if question.question_name == "young" else {"age": 90}


agent = Agent(dynamic_traits_function=traits)
young = QuestionFreeText(question_name="young", question_text="How are you?")
old = QuestionFreeText(question_name="old", question_text="How are you?")
results = Survey([young, old]).by(agent).by(Model("test", canned_response="fine")).run()
prompts = [str(results.select(f"prompt.{name}_system_prompt").to_list()[0]) for name in ("young", "old")]

value = [["10" in prompt, "90" in prompt] for prompt in prompts]
