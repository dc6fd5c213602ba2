"""add_instruction puts it behind the questions that are there."""

from edsl import Instruction, Model, QuestionFreeText, Survey

first = QuestionFreeText(question_name="first", question_text="How are you?")
second = QuestionFreeText(question_name="second", question_text="What did you do?")
survey = Survey([first]).add_instruction(Instruction(name="note", text="Think of last summer.")).add_question(second)
results = survey.by(Model("test", canned_response={"first": "well", "second": "swim"})).run()
prompts = [str(results.select(f"prompt.{name}_user_prompt").to_list()[0]) for name in ("first", "second")]

value = ["Think of last summer." in prompt for prompt in prompts]
