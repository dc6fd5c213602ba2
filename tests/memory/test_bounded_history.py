import random

from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.memory.bounded_history import BoundedHistory, HistoryPoint
from headrace.memory.governor import Pressure


def reading(second: int, memory_bytes: int = 0, level: int = 0, done: int = 0, run: int = 1) -> HistoryPoint:
    return HistoryPoint(second, 1, run, 1e9 + second, memory_bytes, 100, Pressure(level), done, 10 * done)


def test_a_short_history_has_every_second():
    history = BoundedHistory()
    for second in range(100):
        history.add(reading(second, second, done=second))
    assert [(point.second, point.seconds, point.memory_bytes) for point in history.points] == [
        (second, 1, second) for second in range(100)
    ]


def test_a_second_keeps_its_highest_memory_and_level_and_its_last_counts():
    history = BoundedHistory()
    for used, level, done in [(5, 0, 1), (9, 2, 2), (3, 1, 3)]:
        history.add(reading(7, used, level, done)._replace(budget_bytes=used * 10))
    assert history.points == [HistoryPoint(7, 1, 1, 1e9 + 7, 9, 90, Pressure.PREEMPTING, 3, 30)]


@given(st.integers(2, 40), st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1000)), max_size=300))
@settings(deadline=None, max_examples=60, derandomize=True)
def test_a_history_stays_bounded_and_covers_every_reading(most: int, steps: list[tuple[int, int]]):
    history, second, added = BoundedHistory(most=most), 0, []
    for step, used in steps:
        second += step
        added.append(reading(second, used, done=len(added)))
        history.add(added[-1])
        assert len(history.points) <= most
    points = history.points
    assert points == sorted(points)
    for point in points:
        inside = [each for each in added if point.second <= each.second < point.second + point.seconds]
        assert point.memory_bytes == max(each.memory_bytes for each in inside)
        assert (point.done, point.at) == (inside[-1].done, inside[-1].at)
    assert sum(len([e for e in added if p.second <= e.second < p.second + p.seconds]) for p in points) == len(added)
    assert history.end > second or not steps


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30, derandomize=True)
def test_what_is_stored_by_its_changes_is_the_history(seed: int):
    """As the journal writes it: changed points replace those of their second, or everything is replaced."""
    rng, history = random.Random(seed), BoundedHistory(most=16)
    stored: dict[int, HistoryPoint] = {}

    def write() -> None:
        replaces_all, changed = history.take_changes()
        if replaces_all:
            stored.clear()
        stored.update((point.second, point) for point in changed)

    for run in range(rng.randrange(1, 6)):
        second, history = history.end, BoundedHistory(stored.values(), most=16)
        for _ in range(rng.randrange(60)):
            second += rng.randrange(3)
            history.add(reading(second, rng.randrange(100), run=run))
            if rng.random() < 0.4:
                write()
        write()
        assert sorted(stored.values()) == history.points


def test_a_later_run_goes_on_behind_the_last_point():
    first = BoundedHistory(most=8)
    for second in range(20):
        first.add(reading(second, second))
    second = BoundedHistory(first.points, most=8)
    assert second.points == first.points
    assert second.take_changes() == (False, [])
    second.add(reading(second.end, 99, run=2))
    assert [point.run for point in second.points][-2:] == [1, 2]


def test_points_of_several_lengths_become_points_of_the_longest():
    mixed = [reading(0, 5)._replace(seconds=4), reading(4, 6), reading(5, 7), reading(6, 1)]
    history = BoundedHistory(mixed)
    assert [(point.second, point.seconds, point.memory_bytes) for point in history.points] == [(0, 4, 5), (4, 4, 7)]
    assert history.take_changes() == (True, history.points)
