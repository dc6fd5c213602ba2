"""A codebook says in words what a trait's name means."""

from edsl import Agent, Model, QuestionFreeText

agent = Agent(traits={"q17": "often"}, codebook={"q17": "How often the person flies"})
q = QuestionFreeText(question_name="hello", question_text="Who are you?")
results = q.by(agent).by(Model("test", canned_response="me")).run()
prompt = str(results.select("prompt.hello_system_prompt").to_list()[0])

value = ["How often the person flies" in prompt, "often" in prompt, results.select("agent.q17").to_list()]
