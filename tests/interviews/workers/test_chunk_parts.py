"""What becomes of interviews when workers die: pure decisions, played through to the end."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.interviews.contract import Chunk, Interview
from headrace.interviews.workers.assignment import Assignment
from headrace.interviews.workers.chunk_parts import ChunkInFlight, ChunkPart, portions, reassign
from headrace.interviews.workers.chunks_in_flight import ChunksInFlight
from headrace.outbox import Outbox
from headrace.survey.record import AnswerRecord, AnswerState
from headrace.workers.deaths import DeathCause

ROW = b"x" * 100


def in_flight_of(count: int, row: bytes = ROW) -> ChunkInFlight:
    interviews = [Interview(n, 0, n, 0, 0) for n in range(count)]
    return ChunkInFlight(Chunk(1, 1, interviews, dict.fromkeys(range(count), row), {0: b"{}"}))


def part_of(interviews: list[Interview], in_flight: ChunkInFlight, *, is_trial: bool = False) -> ChunkPart:
    return ChunkPart(1, in_flight, {each.ordinal: each for each in interviews}, is_trial)


@given(
    count=st.integers(1, 80),
    poisons=st.sets(st.integers(0, 79), max_size=6),
    names_suspects=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_whatever_kills_workers_only_the_poisoned_fail_and_it_ends(
    count: int, poisons: set[int], names_suspects: bool, seed: int
):
    chance, in_flight = random.Random(seed), in_flight_of(count)
    waiting = [part_of(in_flight.chunk.interviews, in_flight)]
    done, failed, deaths = set[int](), set[int](), 0
    while waiting:
        part = waiting.pop()
        alive = [ordinal for ordinal in part.left if ordinal not in poisons]
        killers = [ordinal for ordinal in part.left if ordinal in poisons]
        for ordinal in chance.sample(alive, chance.randint(0, len(alive))) if killers else alive:
            done.add(ordinal)
            del part.left[ordinal]
        if not killers:
            continue
        deaths += 1
        after = reassign(part, chance.choice(killers) if names_suspects else None, DeathCause.CRASHED)
        if after.failed is not None:
            failed.add(after.failed.ordinal)
        waiting += [part_of(group, in_flight, is_trial=True) for group in after.trials]
        waiting += [part_of(after.again, in_flight)] if after.again else []
    present = poisons & set(range(count))
    assert (done, failed) == (set(range(count)) - present, present)
    assert deaths <= 9 * len(present)


def test_a_death_that_was_nobodys_fault_costs_no_trial():
    in_flight = in_flight_of(5)
    after = reassign(part_of(in_flight.chunk.interviews, in_flight), None, DeathCause.LOST)
    assert (after.again, after.trials, after.failed) == (in_flight.chunk.interviews, [], None)


@given(count=st.integers(1, 80), killer=st.integers(0, 79))
def test_workers_killed_from_outside_cost_no_interview_and_their_killer_stays_alone(count: int, killer: int):
    """Every worker that has one certain interview is killed: nothing tells that it was not from outside."""
    in_flight = in_flight_of(count)
    waiting, undone, deaths = [part_of(in_flight.chunk.interviews, in_flight)], set[int](), 0
    while waiting:
        part = waiting.pop()
        if killer not in part.left:
            continue
        deaths += 1
        after = reassign(part, None, DeathCause.LOST)
        assert (after.failed, after.last) == (None, None)
        undone |= {after.undone.ordinal} if after.undone is not None else set()
        groups = [(group, True) for group in after.trials] + [(after.again, False)]
        for group, is_trial in groups:
            if group:
                waiting.append(part_of(group, in_flight, is_trial=is_trial))
                waiting[-1].kills = after.kills
    assert undone == {killer} & set(range(count))
    assert deaths <= 12


def test_an_interview_is_tried_with_all_the_memory_before_it_fails_for_lack_of_it():
    in_flight = in_flight_of(1)
    trial = part_of(in_flight.chunk.interviews, in_flight, is_trial=True)
    assert reassign(trial, None, DeathCause.OUT_OF_MEMORY, may_need_more=True).last == in_flight.chunk.interviews[0]
    assert reassign(trial, None, DeathCause.OUT_OF_MEMORY).failed == in_flight.chunk.interviews[0]
    trial.is_last = True
    assert reassign(trial, None, DeathCause.OUT_OF_MEMORY, may_need_more=True).failed == in_flight.chunk.interviews[0]


def test_an_interview_that_was_alone_from_the_start_gets_its_one_retry():
    in_flight = in_flight_of(1)
    first = reassign(part_of(in_flight.chunk.interviews, in_flight), 0, DeathCause.CRASHED)
    assert (first.trials, first.failed) == ([in_flight.chunk.interviews], None)
    second = reassign(part_of(first.trials[0], in_flight, is_trial=True), 0, DeathCause.CRASHED)
    assert second.failed == in_flight.chunk.interviews[0]


@pytest.mark.parametrize(("most_bytes", "groups"), [(10**6, 1), (1000, 2), (350, 4), (10, 10)])
def test_a_chunk_is_cut_where_its_rows_would_not_fit(most_bytes: int, groups: int):
    in_flight = in_flight_of(10)
    cut = list(portions(in_flight.chunk, most_bytes))
    assert [interview for group in cut for interview in group] == in_flight.chunk.interviews
    assert len(cut) == groups
    for group in cut:
        part = part_of(group, in_flight)
        assert part.row_bytes <= most_bytes or part.is_single
        assert part.as_chunk().agents.keys() == {interview.agent for interview in group}


def test_an_interview_is_never_given_up_for_hosts_that_go():
    in_flight = in_flight_of(1)
    part = part_of(in_flight.chunk.interviews, in_flight)
    for _ in range(50):
        after = reassign(part, None, DeathCause.LOST, is_host_gone=True)
        assert (after.trials, after.undone, after.kills) == ([], None, 0)
        part = part_of(after.again, in_flight)


def test_a_journaled_answer_goes_with_its_interview_to_the_next_worker():
    in_flight = in_flight_of(2)
    part = part_of(in_flight.chunk.interviews, in_flight)
    part.answered(1, AnswerRecord(0, AnswerState.ANSWERED, "yes", attempts=2, input_tokens=7))
    _, again = reassign(part, None, DeathCause.LOST).again
    assert [record.value for record in again.kept] == ["yes"]
    assert again.uncounted is not None
    assert (again.uncounted.calls, again.uncounted.input_tokens) == (2, 7)


def test_what_a_lost_worker_had_is_given_out_again_in_the_next_epoch():
    chunks = ChunksInFlight(Outbox())
    in_flight = chunks.begin(in_flight_of(4).chunk)
    first = chunks.part(in_flight, in_flight.chunk.interviews)
    assignment = Assignment([], chunks)
    halves = list(assignment._followers(first, reassign(first, None, DeathCause.CRASHED)))
    (again,) = assignment._followers(halves[0], reassign(halves[0], None, DeathCause.LOST))
    assert [(part.id, part.epoch) for part in (first, *halves, again)] == [(1, 1), (1, 2), (2, 2), (1, 3)]
    assert again.as_chunk().epoch == 3
