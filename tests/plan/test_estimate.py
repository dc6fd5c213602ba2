from pathlib import Path

import pytest

from headrace import Agent, AgentList, Model, QuestionFreeText, QuestionNumerical, Survey

survey = Survey(
    [
        QuestionNumerical(question_name="rating", question_text="Rate {{ agent.town }}.", min_value=0, max_value=10),
        QuestionFreeText(question_name="why", question_text="You said {{ rating.answer }}. Why, at {{ agent.age }}?"),
    ]
)


def test_an_estimate_comes_close_and_spends_nothing(tmp_path: Path):
    agents = AgentList(Agent({"age": 20 + n % 50, "town": f"town {n % 7}"}) for n in range(3000))
    words = "Because it is near the sea, and because the people there have always been good to me and to mine. "
    job = survey.by(agents, Model("test", canned_response={"rating": 7, "why": words * 2}))
    estimate = job.estimate()
    path = tmp_path / "a.run"
    stats = job.run(path).stats()
    assert (estimate.interviews, estimate.calls, estimate.cost) == (stats.interviews, stats.calls, 0.0)
    assert 0.8 < estimate.input_tokens / stats.input_tokens < 1.25
    assert 0.5 < estimate.output_tokens / stats.output_tokens < 2
    assert 0.5 < estimate.disk_bytes / path.stat().st_size < 2


def test_an_estimate_counts_every_iteration():
    job = survey.by(Agent({"age": 1, "town": "x"}), Model("test"))
    assert job.estimate(n=3).calls == 6
    assert job.estimate(n=3).cost == 0.0


def test_an_estimate_of_a_part_is_of_that_part():
    job = survey.by(AgentList(Agent({"age": n, "town": "x"}) for n in range(100)), Model("test"))
    assert job.estimate(limit=10).interviews == job.estimate(sample=10).interviews == 10
    assert job.estimate(n=2, limit=150, sample=120).calls == 240
    assert job.estimate(limit=10).output_tokens * 10 == job.estimate(limit=1000).output_tokens


def test_edsls_words_say_the_same():
    dear = Model("test", price={"input": 10, "output": 20}, temperature=1)
    job = (
        Survey([QuestionFreeText(question_name="q", question_text="Well?")])
        .by(Agent(), Agent())
        .by(dear, Model("test"))
    )
    expected, said = job.estimate(2), job.estimate_job_cost(iterations=2)
    assert said["estimated_total_cost_usd"] == expected.cost
    assert said["estimated_total_input_tokens"] == expected.input_tokens
    assert sum(line["cost_usd"] for line in said["detailed_costs"]) == pytest.approx(expected.cost, rel=0.1)
    assert [line["token_type"] for line in said["detailed_costs"]] == ["input", "output"] * 2
    assert job.num_interviews == 4


def test_a_question_s_own_model_has_its_own_price_and_calls():
    dear, cheap = (Model("test", price={"input": price, "output": price}, seed=price) for price in (10, 1))
    questions = [
        QuestionFreeText(question_name="a", question_text="Well?", model=dear),
        QuestionFreeText(question_name="b", question_text="Well?"),
    ]
    both, only_own = Survey(questions).by(cheap), Survey(questions[:1]).by(cheap)
    assert (both.estimate().calls, only_own.estimate().calls) == (2, 1)
    assert both.estimate().cost == pytest.approx(Survey(questions[1:]).by(dear).estimate().cost * 1.1)
    assert only_own.estimate().cost == Survey(questions[1:]).by(dear).estimate().cost
    lines = both.estimate_job_cost()["detailed_costs"]
    assert [line["price_per_million_tokens"] for line in lines] == [1, 1, 10, 10]
    assert sum(line["cost_usd"] for line in lines) == pytest.approx(both.estimate().cost)
    unpriced = Model("nobody-knows", service_name="openai_compatible", base_url="http://127.0.0.1:9")
    own = QuestionFreeText(question_name="a", question_text="Well?", model=unpriced)
    assert Survey([own, questions[1]]).by(cheap).estimate().cost is None


def test_two_questions_of_one_model_are_one_line():
    dear = Model("test", price={"input": 10, "output": 10})
    questions = [QuestionFreeText(question_name=name, question_text="Well?", model=dear) for name in "ab"]
    job = Survey(questions).by(Model("test"))
    assert len(job.estimate_job_cost()["detailed_costs"]) == 2


def test_prompts_that_remember_are_counted_with_what_they_remember(tmp_path: Path):
    questions = [
        QuestionFreeText(question_name=f"q{n}", question_text=f"What of number {n}, and why?") for n in range(10)
    ]
    model = Model("test", canned_response="Because it is near the sea, and people there are good to me. " * 4)
    plain, full = Survey(questions), Survey(questions).set_full_memory_mode()
    estimate, stats = full.by(model).estimate(), full.by(model).run(tmp_path / "a.run").stats()
    assert estimate.input_tokens > 5 * plain.by(model).estimate().input_tokens
    assert 0.8 < estimate.input_tokens / stats.input_tokens < 1.25


def test_agents_that_answer_by_a_function_call_no_model():
    agent = Agent({"age": 1, "town": "x"})
    agent.add_direct_question_answering_method(lambda self, question, scenario: 7)
    expected = survey.by(agent).estimate()
    assert (expected.calls, expected.input_tokens, expected.cost) == (0, 0, 0.0)
