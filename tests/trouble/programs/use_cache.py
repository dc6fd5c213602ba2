"""Uses a response cache: HOW FOLDER [WHO], where HOW names one of the functions below.

Those that mount a small disk over FOLDER need namespaces of their own: unshare -Urm.
"""

import sys
import time
from pathlib import Path

from headrace.limits import CacheLimits
from headrace.models.provider import Reply
from headrace.models.response_cache import ResponseCache, cache_key
from tests.trouble.programs.small_disks import mount
from tests.trouble.programs.telling import tell

COUNT = 3_000


def write(folder: Path, who: str = "one") -> None:
    """COUNT replies of its own and COUNT that all writers share."""
    cache = ResponseCache.open(folder / "cache.sqlite", time.time(), CacheLimits(spare_disk_bytes=0))
    for number in range(COUNT):
        cache.put(key(who, number), reply(who, number))
        cache.put(key("all", number), reply("all", number))
        if number % 700 == 0:  # no service is as quick as this loop
            cache.flush()
    cache.close()
    tell(written=cache.written, skipped=cache.skipped, why_not=cache.why_not)


def write_for_ever(folder: Path, who: str = "one") -> None:
    cache = ResponseCache.open(folder / "cache.sqlite", time.time(), CacheLimits(spare_disk_bytes=0))
    number = 0
    while True:
        cache.put(key(who, number), reply(who, number))
        number += 1
        if number % 1_000 == 0:
            tell(number=number, written=cache.written)


def small_disk(folder: Path) -> None:
    """A disk that fills up, and then has room again."""
    mount(folder, "size=400k")
    write(folder)
    mount(folder, "remount,size=64m")
    write(folder)


def read_only(folder: Path) -> None:
    """A directory that nobody may write to."""
    mount(folder, "size=1m,ro")
    write(folder)


def key(who: str, number: int) -> bytes:
    return cache_key(b"model", who, str(number), {"type": "string"}, 0)


def reply(who: str, number: int) -> Reply:
    text = f"{who} {number} " * 20
    return Reply(text, text.encode(), number, 7)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
