import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from headrace import Model
from headrace.limits import CacheLimits
from headrace.models.provider import Finish, RateHint, Reply
from headrace.models.response_cache import ResponseCache, cache_key
from headrace.store.home import cache_path
from tests.trouble.children import Child, run_child
from tests.trouble.programs.use_cache import COUNT, key, reply
from tests.trouble.small_disks import UNSHARE, needs_small_disks

LIMITS = CacheLimits(spare_disk_bytes=0)
TEXT = {"type": "string"}
LATER = 4e9


def opened(path: Path, started_at: float = LATER, limits: CacheLimits = LIMITS, now: float = 1_000.0) -> ResponseCache:
    return ResponseCache.open(path, started_at, limits, clock=lambda: now)


def filled(path: Path, count: int = 100, now: float = 1_000.0) -> Path:
    cache = opened(path, now=now)
    for number in range(count):
        cache.put(key("one", number), reply("one", number))
    cache.close()
    assert (cache.written, cache.skipped, cache.why_not) == (count, 0, None)
    return path


def found(path: Path, count: int = 100, who: str = "one") -> int:
    """How many are there, each of them right."""
    cache = opened(path)
    for number in range(count):
        reply_found = cache.get(key(who, number))
        assert reply_found is None or reply_found == reply(who, number)
    cache.close()
    assert cache.hits + cache.misses + cache.skipped == count
    return cache.hits


def test_a_reply_comes_back_whole_but_for_the_rates_of_its_moment(tmp_path: Path):
    given = Reply("héllo", b'{"raw": 1}\xff', 11, 22, True, 3, 4, Finish.STOP, RateHint(requests_left=1))
    cache = opened(tmp_path / "cache.sqlite")
    cache.put(b"k" * 16, given)
    cache.close()
    cache = opened(tmp_path / "cache.sqlite")
    assert cache.get(b"k" * 16) == msgspec.structs.replace(given, rates=None)
    assert cache.get(b"j" * 16) is None
    assert (cache.hits, cache.misses, cache.skipped) == (1, 1, 0)
    cache.close()


def test_only_replies_older_than_the_run_are_read(tmp_path: Path):
    path = filled(tmp_path / "cache.sqlite", count=1, now=1_000.0)
    for started_at, is_hit in ((999.0, False), (1_000.0, False), (1_000.1, True)):
        cache = opened(path, started_at)
        assert (cache.get(key("one", 0)) is not None) is is_hit
        cache.close()


def test_a_run_does_not_read_what_it_wrote_itself(tmp_path: Path):
    cache = opened(tmp_path / "cache.sqlite", started_at=500.0, now=501.0)
    for number in range(2_500):
        cache.put(key("one", number), reply("one", number))
    assert [cache.get(key("one", number)) for number in range(100)] == [None] * 100
    cache.close()


@pytest.mark.parametrize(
    "given", [Reply("cut", b"", finish=Finish.LENGTH), Reply("no", b"", finish=Finish.REFUSED), Reply("", b"x")]
)
def test_what_was_cut_off_refused_or_empty_is_never_kept(tmp_path: Path, given: Reply):
    cache = opened(tmp_path / "cache.sqlite")
    cache.put(b"k" * 16, given)
    cache.close()
    assert cache.written == 0


def test_keys_differ_wherever_anything_differs():
    def row(**parameters: Any) -> bytes:
        return Model("m", service_name="s", **parameters).to_row()

    keys = {
        cache_key(row(), "a", "b", TEXT, 0),
        cache_key(row(temperature=0), "a", "b", TEXT, 0),
        cache_key(row(temperature=0.0), "a", "b", TEXT, 0),
        cache_key(row(temperature=None), "a", "b", TEXT, 0),
        cache_key(row(top_p=0), "a", "b", TEXT, 0),
        cache_key(row(), "a", "b", TEXT, 1),
        cache_key(row(), "ab", "", TEXT, 0),
        cache_key(row(), "", "ab", TEXT, 0),
        cache_key(row(), "a", "b\ud800", TEXT, 0),
        cache_key(row(), "a", "b", {"type": "number"}, 0),
        cache_key(row(), "a", "b", {**TEXT, "maxLength": 3}, 0),
    }
    assert len(keys) == 11
    assert {len(one) for one in keys} == {16}
    assert cache_key(row(a=1, b=2), "a", "b", TEXT, 0) == cache_key(row(b=2, a=1), "a", "b", TEXT, 0)


def test_a_newer_reply_replaces_an_older_one(tmp_path: Path):
    path = filled(tmp_path / "cache.sqlite", count=1)
    cache = opened(path, now=2_000.0)
    cache.put(key("one", 0), Reply("newer", b""))
    cache.close()
    cache = opened(path)
    assert (cache.get(key("one", 0)) or Reply("", b"")).text == "newer"
    cache.close()


def test_the_oldest_go_when_the_file_is_full(tmp_path: Path):
    path, limits, count = tmp_path / "cache.sqlite", CacheLimits(most_bytes=1_000_000, spare_disk_bytes=0), 6_000
    cache = opened(path, limits=limits)
    for number in range(count):
        text = f"{number} " + number.to_bytes(8).hex() * 20
        cache.put(key("one", number), Reply(text, text.encode() + os.urandom(300)))
        if number % 700 == 0:
            cache.flush()
    cache.close()
    assert path.stat().st_size <= 1_000_000 + 1_000_000, "and no more than what a batch adds"
    cache = opened(path)
    there = [cache.get(key("one", number)) is not None for number in range(count)]
    cache.close()
    assert cache.written == 0
    assert all(there[-1_000:])
    assert not any(there[: there.index(True)])
    assert 1_000 <= sum(there) <= 4_000


def test_two_processes_that_write_at_once_lose_nothing(tmp_path: Path):
    with Child("use_cache", "write", tmp_path, "one") as one, Child("use_cache", "write", tmp_path, "two") as two:
        told = [*one.ended(), *two.ended()]
    assert [each["skipped"] for each in told] == [0, 0], told
    assert [found(tmp_path / "cache.sqlite", COUNT, who) for who in ("one", "two", "all")] == [COUNT] * 3


def test_a_process_killed_while_it_writes_leaves_a_good_cache(tmp_path: Path):
    with Child("use_cache", "write_for_ever", tmp_path) as child:
        child.wait_until_told(12)
        child.kill()
        written = child.told[-1]["written"]
    assert found(tmp_path / "cache.sqlite", written) == written
    assert filled(tmp_path / "cache.sqlite").exists()


@pytest.mark.parametrize("damage", [b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 8000])
def test_a_damaged_file_is_moved_aside_and_a_new_one_begun(tmp_path: Path, damage: bytes):
    path = tmp_path / "cache.sqlite"
    path.write_bytes(damage)
    assert found(filled(path)) == 100
    assert (tmp_path / "cache.sqlite.damaged").read_bytes() == damage


def test_damage_found_later_is_skipped_and_the_next_run_has_a_new_file(tmp_path: Path):
    path = filled(tmp_path / "cache.sqlite", count=2_000)
    with path.open("r+b") as file:  # all but the first pages, which opening reads
        file.seek(3 * 4096)
        file.write(b"\xff" * (path.stat().st_size - 3 * 4096))
    cache = opened(path)
    assert [cache.get(key("one", number)) for number in range(2_000)] == [None] * 2_000
    cache.put(key("one", 0), reply("one", 0))
    cache.close()
    assert cache.why_not is not None
    assert cache.skipped > 0
    assert found(filled(path)) == 100
    assert (tmp_path / "cache.sqlite.damaged").exists()


def test_a_reply_whose_bytes_changed_is_as_good_as_missing(tmp_path: Path):
    path = filled(tmp_path / "cache.sqlite", count=10)
    connection = apsw.Connection(str(path))
    for number, packed in connection.execute("SELECT number, reply FROM replies").fetchall():
        flipped = bytearray(packed)
        flipped[len(flipped) // 2] ^= 4
        connection.execute("UPDATE replies SET reply = ? WHERE number = ?", (bytes(flipped), number))
    connection.close()
    assert found(path, 10) == 0


@pytest.mark.parametrize("forged", ["'text'", "9223372036854775807"])
def test_a_reply_of_another_type_is_as_good_as_missing(tmp_path: Path, forged: str):
    path = filled(tmp_path / "cache.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE replies SET reply = {forged} WHERE number <= 10")
    assert found(path) == 90


def test_a_locked_file_is_skipped(tmp_path: Path):
    path = filled(tmp_path / "cache.sqlite")
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE").fetchall()
    cache = opened(path)
    assert cache.get(key("one", 0)) is None
    cache.put(key("one", 0), reply("one", 0))
    cache.close()
    connection.close()
    assert cache.skipped == 2
    assert cache.why_not is not None


def test_a_cache_out_of_reach_is_skipped(tmp_path: Path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file" / "cache.sqlite", tmp_path):
        cache = opened(path)
        assert cache.get(b"k" * 16) is None
        cache.put(b"k" * 16, reply("one", 0))
        cache.close()
        assert (cache.skipped, str(path) in (cache.why_not or "")) == (2, True)


def test_a_read_only_disk_is_skipped(tmp_path: Path):
    needs_small_disks()
    (told,) = run_child("use_cache", "read_only", tmp_path, within=UNSHARE)
    assert told["written"] == 0
    assert told["skipped"] == 2 * COUNT
    assert told["why_not"]


def test_a_full_disk_is_skipped_and_room_lets_it_go_on(tmp_path: Path):
    needs_small_disks()
    full, roomy = run_child("use_cache", "small_disk", tmp_path, within=UNSHARE)
    assert full["skipped"] > 0
    assert full["written"] + full["skipped"] == 2 * COUNT
    assert (roomy["written"], roomy["skipped"]) == (2 * COUNT, 0)


def test_the_last_of_a_disk_is_left_to_run_files(tmp_path: Path):
    cache = opened(
        tmp_path / "cache.sqlite", limits=CacheLimits(spare_disk_bytes=shutil.disk_usage(tmp_path).total * 2)
    )
    cache.put(b"k" * 16, reply("one", 0))
    cache.close()
    assert (cache.written, cache.skipped) == (0, 1)


def test_a_file_of_another_program_or_of_a_newer_version_is_left_as_it_is(tmp_path: Path):
    other, newer = tmp_path / "other.sqlite", filled(tmp_path / "newer.sqlite")
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    for path in (other, newer):
        before = path.read_bytes()
        cache = opened(path)
        assert cache.get(key("one", 0)) is None
        cache.close()
        assert (cache.skipped, path.read_bytes() == before) == (1, True)


def test_a_trickle_is_written_now_and_then(tmp_path: Path):
    now = 1_000.0
    cache = ResponseCache.open(tmp_path / "cache.sqlite", LATER, LIMITS, clock=lambda: now)
    for number in range(10):
        cache.put(key("one", number), reply("one", number))
        now += 1.0
    assert [thread for thread in threading.enumerate() if thread.name.startswith("headrace-cache")]
    cache.close()
    assert cache.written == 10


def test_it_lives_in_the_users_data_directory(headrace_home: Path):
    assert cache_path() == headrace_home / "cache.sqlite"
    assert found(filled(cache_path())) == 100
