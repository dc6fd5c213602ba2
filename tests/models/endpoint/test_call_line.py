from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.models.endpoint.call_line import CallLine
from headrace.priority import Priority

AGING_S = 30.0
LOW, NORMAL, HIGH, CRITICAL = Priority


def line_of(*calls: tuple[str, Priority, float]) -> CallLine[str]:
    line: CallLine[str] = CallLine(AGING_S)
    for call in calls:
        line.add(*call)
    return line


def taken(line: CallLine[str], now_s: float, each_s: float = 0.0) -> list[str]:
    """The order in which the calls go, one every `each_s`."""
    found: list[str] = []
    while line.total:
        level, call = line.first()
        line.give_turn(level, now_s)
        found.append(call)
        now_s += each_s
    return found


def test_higher_levels_go_first_and_each_level_in_the_order_its_calls_came():
    line = line_of(("l", LOW, 0), ("n1", NORMAL, 1), ("n2", NORMAL, 2), ("h", HIGH, 3), ("c", CRITICAL, 4))
    assert taken(line, 5.0) == ["c", "h", "n1", "n2", "l"]


def test_a_survey_that_waits_for_itself_does_not_grow_old_before_an_agent_that_asks_now():
    line: CallLine[str] = CallLine(AGING_S)
    for number in range(1_000):
        line.add(f"survey {number}", NORMAL, 0.0)
    for second in range(200):  # it has its turns all the time
        level, _ = line.first()
        line.give_turn(level, float(second))
    line.add("agent", HIGH, 200.0)
    assert line.first() == (HIGH, "agent")


@pytest.mark.parametrize(("level", "turns_in_ten_agings"), [(NORMAL, 9), (LOW, 4)])
def test_beside_agents_that_never_stop_asking_a_lower_level_still_has_its_turns(
    level: Priority, turns_in_ten_agings: int
):
    line: CallLine[str] = CallLine(AGING_S)
    for number in range(100):
        line.add(f"survey {number}", level, 0.0)
    turns = 0
    for second in range(int(10 * AGING_S) + 1):
        line.add(f"agent {second}", HIGH, float(second))
        first, _ = line.first()
        line.give_turn(first, float(second))
        turns += first is level
    assert turns == turns_in_ten_agings


def test_nothing_grows_old_enough_to_pass_a_critical_call():
    line = line_of(("l", LOW, 0.0), ("c", CRITICAL, 1e6))
    assert line.first() == (CRITICAL, "c")


def test_only_a_call_that_has_waited_long_enough_stands_beside_high():
    line = line_of(("n", NORMAL, 0.0), ("l", LOW, 0.0))
    assert [line.is_aged(NORMAL, now_s) for now_s in (29.0, 30.0)] == [False, True]
    assert [line.is_aged(LOW, now_s) for now_s in (59.0, 60.0)] == [False, True]


def test_a_call_that_leaves_from_the_middle_is_not_met_again_and_leaving_twice_is_no_harm():
    line = line_of(("a", NORMAL, 0.0), ("b", NORMAL, 0.0), ("h", HIGH, 0.0))
    for call, level in (("a", NORMAL), ("h", HIGH), ("a", NORMAL)):
        line.remove(call, level)
    assert line.waiting() == ["b"]
    assert (line.total, line.first()) == (1, (NORMAL, "b"))


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "turn", "leave"]), st.sampled_from(list(Priority)), st.floats(0, 40)),
    max_size=80,
)


@settings(max_examples=300)
@given(ACTIONS)
def test_whatever_comes_and_goes_the_next_is_never_passed_by_a_lower_one_that_has_not_aged(
    actions: list[tuple[str, Priority, float]],
):
    line: CallLine[int] = CallLine(AGING_S)
    there: dict[Priority, deque[tuple[int, float]]] = {level: deque() for level in Priority}
    last_turn_s = dict.fromkeys(Priority, -1e9)
    now_s = 0.0
    for number, (action, level, wait_s) in enumerate(actions):
        now_s += wait_s
        if action == "add":
            line.add(number, level, now_s)
            there[level].append((number, now_s))
        elif action == "leave" and there[level]:
            line.remove(there[level].pop()[0], level)
        elif action == "turn" and line.total:
            chosen, call = line.first()
            waited_s = now_s - max(there[chosen][0][1], last_turn_s[chosen])
            higher = [each for each in Priority if each > chosen and there[each]]
            assert there[chosen].popleft()[0] == call, "first come, first served within a level"
            assert CRITICAL not in higher
            # Worth a level for each `aging_s`: at most that much later than the calls it passes.
            assert all(waited_s >= (each - chosen) * AGING_S for each in higher)
            line.give_turn(chosen, now_s)
            last_turn_s[chosen] = now_s
        assert line.total == sum(map(len, there.values()))
        assert sorted(line.waiting()) == sorted(call for calls in there.values() for call, _ in calls)
