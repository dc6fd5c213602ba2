import msgspec
import pytest

from headrace import Engine
from headrace.errors import BudgetTooSmall, OptionError
from headrace.limits import MemoryLimits
from headrace.memory.budget import memory_limits
from headrace.memory.governor import Governor, Pressure
from headrace.memory.measure.host_memory import available_bytes, total_bytes
from headrace.memory.measure.own_tree import tree_bytes

MB = 1_000_000


def test_a_budget_of_memory_limits_is_read_as_memory_is():
    more = memory_limits(MemoryLimits(budget="+64MB", preempt_at=0.9))
    assert more.budget_bytes == pytest.approx(tree_bytes() + 64 * MB, abs=32 * MB)
    assert (more.preempt_at, more.budget) == (0.9, None)
    most_bytes = tree_bytes() + available_bytes()
    share = memory_limits(MemoryLimits(budget="60%", preempt_at=0.8))
    assert share.budget_bytes == pytest.approx(min(0.6 * total_bytes(), most_bytes), rel=0.2)
    for written in ("900MB", "900000000", 900 * MB):
        assert memory_limits(MemoryLimits(budget=written)).budget_bytes == memory_limits(written).budget_bytes


def test_a_budget_in_bytes_is_taken_as_it_is():
    given = MemoryLimits(budget_bytes=1000, preempt_at=0.9)
    assert memory_limits(given) is given


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, 'need a budget.*budget="512MB"'),
        ({"budget_bytes": -1}, "-1 bytes leaves no room"),
        ({"budget": "60%", "budget_bytes": 10**9}, "one budget, not budget='60%' and budget_bytes=1000000000"),
        ({"budget": "much"}, "'much' is not an amount of memory"),
        ({"budget": "160%"}, "'160%' is not a share of memory"),
        ({"budget": "+0MB"}, "leaves no room"),
        ({"budget": 0.6}, '0.6 is not an amount of memory. Write "60%" for a share'),
        ({"budget": True}, "'True' is not an amount of memory"),
        ({"budget": "60%", "preempt_at": 0.5}, "must rise"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_when_it_is_written(settings, told):
    with pytest.raises(OptionError, match=told):
        MemoryLimits(**settings)


def test_a_budget_that_is_in_use_already_is_refused(tmp_path):
    with pytest.raises(BudgetTooSmall, match=r'budget="1MB" is .* already uses .* budget="\+256MB"'):
        Engine(tmp_path / "a.run", memory=MemoryLimits(budget="1MB"))


async def test_an_engine_holds_its_own_levels_of_a_written_budget(tmp_path):
    limits = MemoryLimits(budget="+300MB", shrink_at=0.5, shrink_until=0.4, preempt_at=0.6, preempt_until=0.5)
    engine = Engine(tmp_path / "a.run", isolation="inline", memory=limits)
    held = bytearray(200 * MB)  # between making and opening it
    in_use = tree_bytes()
    async with engine:
        assert engine.status().budget_bytes == pytest.approx(in_use + 300 * MB, abs=50 * MB)
    assert len(held) == 200 * MB


def test_limits_can_be_changed_one_by_one():
    limits = MemoryLimits(budget="60%")
    assert msgspec.structs.replace(limits, preempt_at=0.9).budget == "60%"


def test_levels_of_a_budget_on_top_of_gigabytes_are_shares_of_what_is_on_top():
    held = bytes(range(256)) * (800 * MB // 256)
    on_top, own = memory_limits("+100MB"), memory_limits(MemoryLimits(budget="+100MB", preempt_at=0.9))
    for limits in (on_top, own):
        assert limits.base_bytes > 700 * MB
        assert Governor(limits).observe(limits.base_bytes + 60 * MB, 0.0) is Pressure.NORMAL
        assert Governor(limits).observe(limits.base_bytes + 96 * MB, 0.0) is Pressure.EMERGENCY
    assert memory_limits(on_top.budget_bytes).base_bytes == 0  # all of it was given: its levels are shares of it
    assert len(held) > 700 * MB


def test_levels_of_a_budget_on_top_of_little_are_shares_of_all_of_it():
    assert memory_limits("+4GB").base_bytes == 0
