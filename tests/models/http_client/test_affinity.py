"""Which address a call goes to where prompts that begin alike are to go to the same one."""

from collections import Counter

import pytest

from headrace import Model
from headrace.errors import ListError, NetworkAway, ProviderUnavailable
from headrace.models.address_list import AddressList
from headrace.models.http_client.addresses import Address, Addresses, beginning_of
from headrace.models.services import provider_for
from tests.models.asking import a_request

MANY = tuple(f"http://gpu{number}:8000/v1" for number in range(8))
BEGINNINGS = [beginning_of(a_request(system=f"You are {age}.")) for age in range(2_000)]


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def some(urls: tuple[str, ...] = MANY, clock: Clock | None = None) -> Addresses:
    return Addresses(urls, "chat/completions", clock or Clock())


def homes(addresses: Addresses) -> list[str]:
    return [picked(addresses, beginning).base_url for beginning in BEGINNINGS]


def picked(addresses: Addresses, beginning: int | None, tried: list[Address] | None = None) -> Address:
    address = addresses.pick(tried or [], beginning)
    assert address is not None
    return address


def test_each_beginning_has_one_address_the_same_in_every_process_and_all_have_their_share():
    assert homes(some()) == homes(some(MANY[::-1]))
    shares = Counter(homes(some()))
    assert set(shares) == set(MANY)
    assert all(0.75 < share / (len(BEGINNINGS) / len(MANY)) < 1.25 for share in shares.values())
    # Told here so that another build of Python, or another machine, is seen to agree.
    assert (BEGINNINGS[30], homes(some())[30]) == (10573884340982019520, "http://gpu3:8000/v1")


def test_an_address_that_joins_or_leaves_moves_only_its_own_share():
    known = AddressList(MANY)
    addresses = some()
    addresses.follow(known)
    before = homes(addresses)
    known.replace(MANY[1:])
    after = homes(addresses)
    assert [one for one, other in zip(before, after, strict=True) if one != other] == [MANY[0]] * before.count(MANY[0])
    known.replace((*MANY[1:], MANY[0]))
    assert homes(addresses) == before


def test_an_address_that_failed_is_passed_over_for_a_while_for_the_next_in_order():
    clock = Clock()
    addresses = some(clock=clock)
    own = picked(addresses, BEGINNINGS[0])
    second = picked(addresses, BEGINNINGS[0], [own])
    assert second is not own
    addresses.failed(own, NetworkAway("gone"))
    assert {picked(addresses, BEGINNINGS[0]) for _ in range(20)} == {second}
    clock.now_s = 6
    assert picked(addresses, BEGINNINGS[0]) is own
    for address in [picked(addresses, beginning) for beginning in BEGINNINGS]:
        addresses.failed(address, ProviderUnavailable("broken"))
    assert picked(addresses, BEGINNINGS[0]) is not None  # all failed: one of them is asked all the same


def test_an_address_that_has_clearly_more_in_flight_is_passed_over():
    addresses = some(MANY[:4])
    for _ in range(100):
        picked(addresses, BEGINNINGS[0]).in_flight += 1
    loads = sorted(address.in_flight for address in addresses._all)
    assert sum(loads) == 100
    assert loads[-1] <= 32
    assert loads[0] > 0


@pytest.mark.parametrize("beginning", [None, BEGINNINGS[0]])
def test_an_address_that_was_not_reached_is_tried_by_one_call_at_a_time(beginning):
    clock = Clock()
    addresses = some(clock=clock)
    away = picked(addresses, beginning)
    addresses.failed(away, NetworkAway("no connection in time"))
    clock.now_s = 6
    asked = [picked(addresses, beginning) for _ in range(8)]
    assert away in asked
    away.in_flight += 1
    assert away not in [picked(addresses, beginning) for _ in range(20)]
    addresses.answered(away)
    assert away in [picked(addresses, beginning) for _ in range(8)] or beginning is None


def test_without_affinity_the_least_busy_is_asked():
    addresses = some(MANY[:4])
    for _ in range(100):
        picked(addresses, None).in_flight += 1
    assert {address.in_flight for address in addresses._all} == {25}


def test_a_prompt_begins_with_its_persona_and_with_a_document_where_one_follows():
    document, other = "a" * 5_000, "b" * 5_000
    short = beginning_of(a_request("Who are you?", system="You are 30."))
    assert beginning_of(a_request("Who is she?", system="You are 30.")) == short
    assert beginning_of(a_request("Who are you?", system="You are 31.")) != short
    about = beginning_of(a_request(f"{document} Is it long?", system="You are 30."))
    assert beginning_of(a_request(f"{document} Is it good?", system="You are 30.")) == about
    assert beginning_of(a_request(f"{other} Is it long?", system="You are 30.")) != about
    assert beginning_of(a_request("Who are you?", system="")) != beginning_of(a_request("Who is she?", system=""))
    assert isinstance(beginning_of(a_request("\ud800", system="")), int)


def test_addresses_that_change_keep_what_is_known_of_those_that_stay():
    known = AddressList(MANY[:2])
    addresses = some(MANY[:2])
    addresses.follow(known)
    first, second = picked(addresses, None), picked(addresses, None)
    first.in_flight, second.in_flight = 3, 5
    second.takes_schema = False
    known.replace((second.base_url, MANY[7]))
    assert [picked(addresses, None).base_url for _ in range(3)] == [MANY[7]] * 3
    addresses.failed(first, NetworkAway("gone"))  # a call that was in flight when its address left
    assert addresses.answered(second) is None
    known.replace((second.base_url,))
    assert picked(addresses, None) is second
    assert picked(addresses, None, [first]) is second
    assert addresses.pick([second]) is None
    assert not second.takes_schema


def test_another_affinity_is_refused_before_anything_runs():
    with pytest.raises(ListError, match="affinity='random' is not known") as raised:
        provider_for(Model("m", base_url="http://a", affinity="random"))
    assert raised.value.fix == 'Give affinity="prefix", or leave it out.'
    with pytest.raises(ListError, match="affinity=True is not known"):
        provider_for(Model("m", base_url="http://a", affinity=True))
    provider_for(Model("m", base_url="http://a", affinity="prefix"))
