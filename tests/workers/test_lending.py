from hypothesis import given
from hypothesis import strategies as st

from headrace.workers.lending import Borrower, limits_within

MB = 1 << 20
sizes = st.integers(0, 1000).map(lambda size: size * MB)


@st.composite
def borrowers(draw):
    used, reserved, above = draw(sizes), draw(sizes), draw(sizes)
    return Borrower(used, reserved, max(reserved, used) + above)


@given(sizes, st.lists(borrowers(), max_size=6))
def test_limits_together_never_exceed_what_there_is_nor_fall_below_what_is_in_use(room, asked):
    limits = limits_within(room, asked)
    assert sum(limits) <= max(room, sum(each.used_bytes for each in asked))
    for limit, each in zip(limits, asked, strict=True):
        assert each.used_bytes <= limit <= max(each.ceiling_bytes, each.used_bytes)


@given(sizes, st.lists(borrowers(), min_size=1, max_size=6))
def test_where_there_is_enough_everyone_has_what_it_was_promised_and_nothing_lies_idle(room, asked):
    limits = limits_within(room, asked)
    promised = [max(each.reserved_bytes, min(each.used_bytes + 8 * MB, each.ceiling_bytes)) for each in asked]
    if sum(promised) <= room:
        assert all(limit >= least for limit, least in zip(limits, promised, strict=True))
        are_full = all(limit == each.ceiling_bytes for limit, each in zip(limits, asked, strict=True))
        assert are_full or room - sum(limits) < len(asked) ** 2  # what rounding leaves


def test_two_ceilings_of_400_fit_into_450_because_they_are_lent():
    busy, fresh = Borrower(200 * MB, 50 * MB, 400 * MB), Borrower(0, 50 * MB, 400 * MB)
    first, second = limits_within(450 * MB, [busy, fresh])
    assert first > 350 * MB
    assert second >= 50 * MB
    assert limits_within(450 * MB, [busy]) == [400 * MB]
