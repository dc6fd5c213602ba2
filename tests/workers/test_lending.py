from hypothesis import example, given
from hypothesis import strategies as st

from headrace.priority import Priority
from headrace.workers.lending import Borrower, enough_to_go_on, is_nearly_full, limits_within

MB = 1 << 20
sizes = st.integers(0, 1000).map(lambda size: size * MB)


@st.composite
def borrowers(draw):
    used, reserved, above = draw(sizes), draw(sizes), draw(sizes)
    is_starting = not used and draw(st.booleans())
    return Borrower(used, reserved, max(reserved, used) + above, draw(st.sampled_from(Priority)), is_starting)


@given(sizes, st.lists(borrowers(), max_size=6))
def test_limits_together_never_exceed_what_there_is_nor_fall_below_what_is_in_use(room, asked):
    limits = limits_within(room, asked)
    assert sum(limits) <= max(room, sum(each.firm_bytes for each in asked))
    for limit, each in zip(limits, asked, strict=True):
        assert each.firm_bytes <= limit <= max(each.ceiling_bytes, each.used_bytes)


@given(sizes, st.lists(borrowers(), min_size=2, max_size=6))
@example(450 * MB, [Borrower(200 * MB, 0, 400 * MB), Borrower(200 * MB, 200 * MB, 400 * MB, Priority.LOW)])
def test_no_worker_is_short_while_a_lower_one_has_memory_that_it_does_not_use(room, asked):
    lent = list(zip(limits_within(room, asked), asked, strict=True))
    for limit, each in lent:
        is_short = limit < each.reserved_bytes or is_nearly_full(each.used_bytes, limit)
        if is_short and limit < each.ceiling_bytes:
            lower = [(theirs, other) for theirs, other in lent if other.priority < each.priority]
            assert all(theirs == other.firm_bytes for theirs, other in lower)


@given(sizes, st.lists(borrowers(), min_size=2, max_size=6))
def test_what_nobody_needs_goes_to_the_highest_first(room, asked):
    lent = list(zip(limits_within(room, asked), asked, strict=True))
    for limit, each in lent:
        rounding = len(asked) ** 2
        if limit < each.ceiling_bytes - rounding:
            lower = [(theirs, other) for theirs, other in lent if other.priority < each.priority]
            assert all(theirs <= comfortable(other) + rounding for theirs, other in lower)


@given(sizes, st.lists(borrowers(), min_size=1, max_size=6))
def test_where_there_is_enough_everyone_has_what_it_was_promised_and_nothing_lies_idle(room, asked):
    limits = limits_within(room, asked)
    least = [comfortable(each) for each in asked]
    if sum(least) <= room:
        assert all(limit >= wanted for limit, wanted in zip(limits, least, strict=True))
        are_full = all(limit == each.ceiling_bytes for limit, each in zip(limits, asked, strict=True))
        assert are_full or room - sum(limits) < len(asked) ** 2  # what rounding leaves


def comfortable(borrower):
    """What it was promised, and enough not to be nearly full."""
    wanted = max(borrower.reserved_bytes, int((borrower.used_bytes + 8 * MB) / 0.8))
    return min(max(wanted, enough_to_go_on(borrower.used_bytes)), borrower.ceiling_bytes)


def test_two_ceilings_of_400_fit_into_450_because_they_are_lent():
    busy, fresh = Borrower(200 * MB, 50 * MB, 400 * MB), Borrower(0, 50 * MB, 400 * MB)
    first, second = limits_within(450 * MB, [busy, fresh])
    assert first > 350 * MB
    assert second >= 50 * MB
    assert limits_within(450 * MB, [busy]) == [400 * MB]


def test_of_two_that_grow_alike_the_higher_has_what_the_lower_does_not_use():
    low = Borrower(170 * MB, 200 * MB, 400 * MB, Priority.LOW)
    high = Borrower(170 * MB, 200 * MB, 400 * MB, Priority.HIGH)
    lower, higher = limits_within(400 * MB, [low, high])
    assert higher == (170 + 8) * MB / 0.8
    assert lower == 400 * MB - higher
