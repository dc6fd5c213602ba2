"""Combinations that `job.where` leaves out, against a plain loop over the product."""

import random
import tracemalloc
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Agent, AgentList, Model, QuestionFreeText, ScenarioList
from headrace.errors import ListError, SurveyError
from headrace.plan import left_out as evaluation
from headrace.plan.bit_writer import BitWriter, repeated
from headrace.plan.bitmap import Bitmap
from headrace.plan.job import Job
from headrace.plan.portion import Portion
from headrace.plan.product import Box, Coordinates

ASK = QuestionFreeText(question_name="q", question_text="Well?")
MODELS = [Model("test", canned_response=each) for each in "abc"]


def _job(agents: int, scenarios: int, models: int = 1) -> Job:
    people = AgentList(Agent({"age": at, "both": 1}, name=f"p{at}") for at in range(agents))
    return ASK.by(people, ScenarioList({"k": at, "both": 1} for at in range(scenarios)), MODELS[:models])


def _kept(job: Job) -> list[tuple[int, int, int]]:
    shape = job.shape(1)
    out = job.left_out(Box(Coordinates(0, 0, 0, 0), shape))
    places = product(range(shape.agent), range(shape.scenario), range(shape.model))
    return [place for at, place in enumerate(places) if at not in out]


CONDITIONS = {
    "agent.age > 2": lambda a, s, m: a > 2,
    "scenario.k % 3 == 1": lambda a, s, m: s % 3 == 1,
    "model.canned_response != 'b'": lambda a, s, m: m != 1,
    "agent.age == scenario.k": lambda a, s, m: a == s,
    "agent._index < 3 or model._index == 0": lambda a, s, m: a < 3 or m == 0,
    "age > 1 and k != 0 and age != k": lambda a, s, m: a > 1 and s != 0 and a != s,
    "{{ agent.name }} != 'p1'": lambda a, s, m: a != 1,
    "{{ scenario._index == agent._index }}": lambda a, s, m: a == s,
    "True": lambda a, s, m: True,
    "model.model == 'test' and 1 < 2": lambda a, s, m: True,
}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(CONDITIONS)), min_size=1, max_size=3),
    st.integers(1, 9),
    st.integers(1, 9),
    st.integers(1, 3),
    st.booleans(),
)
def test_what_is_kept_is_what_a_loop_keeps(written, agents, scenarios, models, is_streamed):
    job = _job(agents, scenarios, models)
    for text in written:
        job = job.where(text)
    with pytest.MonkeyPatch.context() as patch:
        if is_streamed:
            patch.setattr(evaluation, "_HELD_SCENARIOS", 0)
        kept = _kept(job)
    everything = product(range(agents), range(scenarios), range(models))
    assert kept == [place for place in everything if all(CONDITIONS[text](*place) for text in written)]
    assert len(job) == len(kept)


def test_by_after_where_is_still_restricted_and_where_changes_no_job():
    job = _job(4, 4)
    kept = job.where("agent.age == scenario.k")
    assert (len(job), len(kept), len(kept.by({"more": 1}, {"more": 2}))) == (16, 4, 8)
    assert job.identity() != kept.identity() != job.where("agent.age == scenario.k").where("True").identity()
    assert job.identity().digest != kept.identity().digest


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("agent.agee > 3", r"no agent has a field 'agee'\. Did you mean 'age'"),
        ("both == 1", r"'both' could be two things\. Write agent\.both or scenario\.both"),
        ("q == 'x'", "names the question 'q', and there are no answers before the run"),
        ("city == 'x'", "nothing called 'city'"),
        ("model.temperature > 1", "no model has a field 'temperature'"),
    ],
)
def test_a_name_that_is_not_known_is_refused(written, said):
    with pytest.raises(SurveyError, match=said):
        len(_job(2, 2).where(written))


def test_a_condition_that_is_none_is_refused():
    for given_ in ("", None, 7):
        with pytest.raises(SurveyError, match="is no condition"):
            _job(1, 1).where(given_)  # type: ignore[arg-type]


def test_a_job_of_which_nothing_is_left_is_refused(tmp_path):
    job = _job(2, 2).where("agent.age > 5")
    assert len(job) == 0
    for ask in (job.estimate, lambda: job.run(tmp_path / "a.run")):
        with pytest.raises(ListError, match=r"where\(\) leaves out every combination"):
            ask()
    assert not (tmp_path / "a.run").exists()


def test_the_cost_counts_the_models_that_are_left():
    dear, cheap = (Model("test", price={"input": price, "output": price}, seed=price) for price in (100, 1))
    job = ASK.by(dear, cheap)
    assert job.where("model.seed == 1").estimate().cost == pytest.approx(ASK.by(cheap).estimate().cost)


def test_a_hundred_million_combinations_take_a_bit_each():
    job = _job(10_000, 10_000).where("agent.age >= 30 and scenario.k % 5 != 0")
    assert len(job) == 9_970 * 8_000


def test_more_combinations_than_bits_can_hold_are_refused():
    class Long:
        length = 10**6

    job = _job(1, 1).where("agent.age > 1")
    with pytest.raises(ListError, match=r"1,000,000,000,000 combinations.*filter\(\)"):
        evaluation.left_out(job, Box(Coordinates(0, 0, 0, 0), Coordinates(1, Long.length, Long.length, 1)))


@given(st.lists(st.tuples(st.integers(0, 2**70), st.integers(0, 90)), max_size=80), st.integers(1, 3))
def test_bits_are_appended_and_repeated_in_order(groups, times):
    writer, expected = BitWriter(sum(count for _, count in groups)), []
    for value, count in groups:
        writer.append(value & ((1 << count) - 1), count)
        expected += [bool(value >> at & 1) for at in range(count)]
    found = repeated(writer.bitmap(), times)
    assert [at in found for at in range(found.length)] == expected * times
    assert found.count == sum(expected) * times
    assert [found.count_every(3, first) for first in range(3)] == [sum((expected * times)[f::3]) for f in range(3)]


@given(st.lists(st.booleans(), max_size=300), st.data())
def test_a_portion_counts_only_what_is_included(out, data):
    bits = Bitmap(len(out))
    bits.update(at for at, is_out in enumerate(out) if is_out)
    included = [at for at, is_out in enumerate(out) if not is_out]
    assert list(bits.gaps_at(range(len(included)))) == included
    limit = data.draw(st.none() | st.integers(1, 320))
    sample = data.draw(st.none() | st.integers(1, 320))
    portion = Portion(len(out), limit=limit, sample=sample, seed=1, left_out=bits)
    first = included[:limit]
    assert portion.total == min(sample or len(first), len(first))
    skipped = portion.passed_over(Bitmap(len(out)))
    chosen = [at for at in range(portion.stop) if at not in skipped]
    assert len(chosen) == portion.total
    assert set(chosen) <= set(first)
    assert portion.count(Bitmap(len(out))) == 0


@given(st.lists(st.booleans(), max_size=300), st.integers(1, 320), st.integers(0, 3))
def test_a_sample_is_the_same_for_the_same_seed_in_every_version(out, sample, seed):
    """Files keep the seed and not the sample: it is drawn as it always was."""
    included = [at for at, is_out in enumerate(out) if not is_out]
    few, draw, drawn = min(sample, len(included) - sample), random.Random(seed).randrange, set[int]()
    while len(drawn) < few:
        drawn.add(draw(len(included)))
    expected = [o for at, o in enumerate(included) if sample >= len(included) or (at in drawn) == (few == sample)]
    bits = Bitmap(len(out))
    bits.update(at for at, is_out in enumerate(out) if is_out)
    portion = Portion(len(out), limit=None, sample=sample, seed=seed, left_out=bits)
    skipped = portion.passed_over(Bitmap(len(out)))
    assert [at for at in range(portion.stop) if at not in skipped] == expected


def test_a_large_sample_of_a_billion_takes_little_memory():
    tracemalloc.start()
    portion = Portion(10**9, limit=None, sample=20_000, seed=1)
    skipped = portion.passed_over(Bitmap(10**9))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert skipped.count == 10**9 - 20_000
    assert peak_bytes < 15_000_000
