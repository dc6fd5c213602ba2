"""A skip rule may look at the agent."""

from edsl import Agent, AgentList, Model, QuestionFreeText, Survey

hello = QuestionFreeText(question_name="hello", question_text="Hello?")
school = QuestionFreeText(question_name="school", question_text="How is school?")
survey = Survey([hello, school]).add_skip_rule("school", "{{ agent.age }} > 18")
agents = AgentList([Agent(traits={"age": 10}), Agent(traits={"age": 50})])
results = survey.by(agents).by(Model("test", canned_response="fine")).run()

value = results.select("agent.age", "hello", "school").to_list()
