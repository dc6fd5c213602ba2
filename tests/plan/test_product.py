from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.product import Coordinates, Plan

sides = st.integers(1, 6)
shapes = st.builds(Coordinates, sides, sides, sides, sides)
growths = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), max_size=4)


def grown(plan: Plan, steps: list[tuple[int, int, int]]) -> Plan:
    for iterations, agents, scenarios in steps:
        shape = plan.shape
        plan = plan.grown(
            Coordinates(shape.iteration + iterations, shape.agent + agents, shape.scenario + scenarios, shape.model)
        )
    return plan


@given(shapes, growths)
def test_every_ordinal_is_a_cell_of_its_own_and_every_cell_is_hit(
    shape: Coordinates, steps: list[tuple[int, int, int]]
):
    plan = grown(Plan.of(shape), steps)
    cells = {plan.coordinates(ordinal) for ordinal in range(len(plan))}
    final = plan.shape
    assert len(plan) == len(cells) == final.iteration * final.agent * final.scenario * final.model
    assert all(0 <= part < limit for cell in cells for part, limit in zip(cell, final, strict=True))


@given(shapes, growths)
def test_an_ordinal_leads_to_its_cell_and_back(shape: Coordinates, steps: list[tuple[int, int, int]]):
    plan = grown(Plan.of(shape), steps)
    assert [plan.ordinal(plan.coordinates(ordinal)) for ordinal in range(len(plan))] == list(range(len(plan)))


@given(shapes, growths)
def test_growing_never_moves_an_ordinal(shape: Coordinates, steps: list[tuple[int, int, int]]):
    before = Plan.of(shape)
    after = grown(before, steps)
    assert [after.coordinates(ordinal) for ordinal in range(len(before))] == [
        before.coordinates(ordinal) for ordinal in range(len(before))
    ]


@given(shapes, growths)
def test_a_plan_is_rebuilt_from_its_boxes(shape: Coordinates, steps: list[tuple[int, int, int]]):
    plan = grown(Plan.of(shape), steps)
    assert Plan.from_boxes(plan.boxes) == plan


def test_the_first_interviews_meet_every_model():
    plan = Plan.of(Coordinates(1, 1000, 1, 3))
    assert [plan.coordinates(ordinal).model for ordinal in range(6)] == [0, 1, 2, 0, 1, 2]


def test_a_plan_of_a_trillion_costs_nothing():
    plan = Plan.of(Coordinates(10, 10**6, 10**5, 1))
    assert plan.coordinates(len(plan) - 1) == Coordinates(9, 10**6 - 1, 10**5 - 1, 0)
