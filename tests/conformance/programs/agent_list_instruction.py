"""One instruction and one way to show traits for a whole list."""

from edsl import AgentList, Model, QuestionFreeText

agents = AgentList.from_list("age", [20, 30])
agents.set_instruction("Answer as a pirate would.")
agents.set_traits_presentation_template("You are {{ age }} years of age.")
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agents).by(Model("test", canned_response="me")).run()
prompts = [str(prompt) for prompt in results.select("prompt.hello_system_prompt").to_list()]

value = [
    ["Answer as a pirate would." in prompt for prompt in prompts],
    ["You are 20 years of age." in prompts[0], "You are 30 years of age." in prompts[1]],
]
