"""How traits are shown to the model can be changed."""

from edsl import Agent, Model, QuestionFreeText

agent = Agent(
    traits={"age": 36, "city": "Oslo"}, traits_presentation_template="You are {{ age }} and live in {{ city }}."
)
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agent).by(Model("test", canned_response="me")).run()
prompt = str(results.select("prompt.hello_system_prompt").to_list()[0])

value = "You are 36 and live in Oslo." in prompt
