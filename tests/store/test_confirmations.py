import multiprocessing
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.store.confirmations import Confirmed, read_confirmed, remember

PLAN = "0123456789abcdef"


def confirmed(address: str, **more: int) -> Confirmed:
    return Confirmed(contacts=((address, None),), **more)


def test_what_is_confirmed_is_remembered_and_only_its_user_may_read_it(headrace_home: Path):
    assert read_confirmed(PLAN) is None
    before = os.umask(0)
    try:
        remember(PLAN, confirmed("http://a", interviews=3))
    finally:
        os.umask(before)
    assert read_confirmed(PLAN) == confirmed("http://a", interviews=3)
    directory = headrace_home / "confirmed"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()} == {0o600}


def test_confirmations_add_up_to_the_most_that_was_confirmed():
    remember(PLAN, Confirmed(contacts=(("http://a", "A"),), interviews=3, max_cost=1.0, memory=("60%",), workers=2))
    remember(PLAN, Confirmed(contacts=(("http://b", None),), interviews=2, max_cost=5.0, max_tokens_total=9))
    assert read_confirmed(PLAN) == Confirmed(
        contacts=(("http://a", "A"), ("http://b", None)), interviews=3, max_cost=5.0, memory=("60%",), workers=2
    )


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"contacts": 3}', b'{"contacts": [["a"]]}'])
def test_a_damaged_record_counts_as_not_confirmed_and_is_replaced(content: bytes, headrace_home: Path):
    remember(PLAN, confirmed("http://a"))
    (headrace_home / "confirmed" / PLAN).write_bytes(content)
    assert read_confirmed(PLAN) is None
    remember(PLAN, confirmed("http://b"))
    assert read_confirmed(PLAN) == confirmed("http://b")


def test_a_record_of_an_earlier_or_later_version_is_read_as_far_as_it_is_known(headrace_home: Path):
    remember(PLAN, confirmed("http://a"))
    (headrace_home / "confirmed" / PLAN).write_bytes(b'{"contacts": [["http://c", null]], "colour": "red"}')
    assert read_confirmed(PLAN) == confirmed("http://c")


def test_a_record_that_others_may_write_or_that_is_a_link_is_not_trusted(headrace_home: Path, tmp_path: Path):
    remember(PLAN, confirmed("http://a"))
    record = headrace_home / "confirmed" / PLAN
    record.chmod(0o666)
    assert read_confirmed(PLAN) is None
    record.chmod(0o600)
    record.rename(tmp_path / "planted")
    record.symlink_to(tmp_path / "planted")
    assert read_confirmed(PLAN) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_record_that_is_no_plain_file_counts_as_not_confirmed(make: Callable[[Path], None], headrace_home: Path):
    remember("another plan", confirmed("http://a"))  # makes the directory
    make(headrace_home / "confirmed" / PLAN)
    assert read_confirmed(PLAN) is None
    remember(PLAN, confirmed("http://a"))  # replaces the pipe; a directory stays, and nothing fails


def test_where_nothing_can_be_written_nothing_is_remembered_and_nothing_fails(headrace_home: Path):
    headrace_home.parent.mkdir(parents=True, exist_ok=True)
    headrace_home.write_text("a file where the directory should be")
    remember(PLAN, confirmed("http://a"))
    assert read_confirmed(PLAN) is None


def _remember_some(first: int) -> None:
    for number in range(first, first + 20):
        remember(PLAN, confirmed(f"http://{number}"))


def test_processes_that_confirm_at_once_lose_nothing():
    started = [multiprocessing.get_context("fork").Process(target=_remember_some, args=(n * 20,)) for n in range(3)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    found = read_confirmed(PLAN)
    assert found is not None
    assert len(found.contacts) == 60
