"""A data frame of the selected columns."""

from edsl import AgentList, Model, QuestionFreeText

q = QuestionFreeText(question_name="q", question_text="How are you?")
results = q.by(AgentList.from_list("age", [20, 30])).by(Model("test", canned_response="fine")).run()
frame = results.select("agent.age", "answer.q").to_pandas()
bare = results.select("agent.age", "answer.q").to_pandas(remove_prefix=True)

value = [list(frame.columns), [int(age) for age in frame["agent.age"]], list(bare.columns), len(results.to_pandas())]
