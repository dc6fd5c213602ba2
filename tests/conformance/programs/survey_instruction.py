"""An instruction is shown with the questions that follow it and has no answer."""

from edsl import Instruction, Model, QuestionFreeText, Survey

first = QuestionFreeText(question_name="first", question_text="How are you?")
note = Instruction(name="note", text="Think of last summer.")
second = QuestionFreeText(question_name="second", question_text="What did you do?")
survey = Survey([first, note, second])
results = survey.by(Model("test", canned_response={"first": "well", "second": "swim"})).run()
prompts = [str(results.select(f"prompt.{name}_user_prompt").to_list()[0]) for name in ("first", "second")]

value = [
    survey.question_names,
    results.select("answer.*").to_dicts(),
    ["Think of last summer." in prompt for prompt in prompts],
]
