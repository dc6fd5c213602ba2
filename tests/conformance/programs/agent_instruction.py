"""An agent's instruction is in its system prompt."""

from edsl import Agent, Model, QuestionFreeText

agent = Agent(traits={"age": 36}, instruction="Answer as a pirate would.")
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agent).by(Model("test", canned_response="Arr")).run()
prompt = str(results.select("prompt.hello_system_prompt").to_list()[0])

value = ["Answer as a pirate would." in prompt, results.select("hello").to_list()]
