"""The lines that users were promised, as they were promised. Run as a program by test_documents.py."""

from headrace import (Agent, AgentList, Job, Model, QuestionFreeText, QuestionMultipleChoice, QuestionNumerical,
                      Results, ScenarioList, Survey)

survey = Survey([
    QuestionMultipleChoice(question_name="mood", question_text="How do you feel about {{ scenario.city }}?",
                           question_options=["Good", "Bad"]),
    QuestionNumerical(question_name="rating", question_text="You said {{ mood.answer }}. Rate it.", min_value=0, max_value=10),
])
job = survey.by(AgentList(Agent(name=f"p{i}", traits={"age": 20 + i % 50}) for i in range(1000))) \
            .by(ScenarioList.from_list("city", ["Oslo", "Lima"])) \
            .by(Model("test", canned_response={"mood": "Good", "rating": 7}))

assert len(job) == 2000
job.estimate()
results = job.run("city.run", memory="256MB", concurrency=200, n=1, progress_bar=True)
assert results.stats().reused == 0
results = job.run("city.run")
assert results.stats().reused == 2000
job.run("city.run", limit=50)
job.run("city.run", fresh=True)
seen = []
job.run("city.run", on_result=lambda r: seen.append(r))
assert seen == []
count = 0
for r in job.stream("city.run"):
    count += 1
assert count == 2000


async def inside_a_loop() -> int:
    count = 0
    async for r in job.astream("city.run"):
        count += 1
    await job.run_async("city.run")
    return count


import asyncio

assert asyncio.run(inside_a_loop()) == 2000

results = Results.open("city.run")
len(results); results[0]; results[10:20]; next(iter(results))
chosen = results.select("agent.age", "answer.*").filter("answer.rating > 5 and agent.age < 30").sort_by("agent.age")
assert len(chosen) == 400
assert chosen.columns == ["agent.age", "answer.mood", "answer.rating"]
assert chosen[0].agent["age"] == 20
assert chosen[-1].agent["age"] == 29
assert len(results.to_pandas()) == 2000
results.to_parquet("x.parquet")
table = results.sql("select mood, avg(rating) from self group by mood")
assert list(table) == [("Good", 7.0)]
stats = results.stats()
for name in ("interviews", "reused", "failed", "calls", "tokens", "cost", "seconds", "peak_memory"):
    assert getattr(stats, name) is not None, name
result = results[0]
assert result["answer"]["mood"] == result.answer["mood"] == "Good"
print("kept")
