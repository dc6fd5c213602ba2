"""One question sees several earlier ones."""

from edsl import Model, QuestionFreeText, Survey

names = ["one", "two", "three", "four"]
questions = [QuestionFreeText(question_name=name, question_text=f"Tell me {name}.") for name in names]
survey = Survey(questions).add_memory_collection("four", ["one", "three"])
results = survey.by(Model("test", canned_response={name: f"said {name}" for name in names})).run()
prompts = [str(results.select(f"prompt.{name}_user_prompt").to_list()[0]) for name in names]

value = [[f"said {name}" in prompt for name in names] for prompt in prompts]
