"""Meets a full disk, makes room, goes on: HOW FOLDER, where HOW names one of the functions below.

Those that mount a small disk over FOLDER need namespaces of their own: unshare -Urm.
"""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from tests.trouble.programs.letters import letters_job, right_letters
from tests.trouble.programs.small_disks import fill, mount
from tests.trouble.programs.telling import outcome_of, tell

COUNT, CHARS = 600, 4_000
ROOMY = "256m"


def small_disk(folder: Path) -> None:
    mount(folder, "size=3m")
    _fill_up_and_go_on(folder / "letters.run", lambda: mount(folder, f"remount,size={ROOMY}"))


def size_limit(folder: Path) -> None:
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, most))
    _fill_up_and_go_on(folder / "letters.run", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))


def no_room_for_the_lists(folder: Path) -> None:
    """Full while the run file is being made."""
    mount(folder, "size=1m")
    path, job = folder / "letters.run", letters_job(20_000, chars=100, padding="x" * 100)
    tell(**outcome_of(lambda: job.run(path, limit=100).close()))
    tell(**outcome_of(lambda: job.run(path, limit=100).close()))
    mount(folder, f"remount,size={ROOMY}")
    tell(**outcome_of(lambda: job.run(path, limit=100).close()), count=right_letters(path, 100))


def no_room_at_all(folder: Path) -> None:
    """Full to the last byte before anything is written."""
    mount(folder, "size=1m")
    filler = folder / "filler"
    fill(filler)
    path, job = folder / "letters.run", letters_job(20, chars=100)
    tell(**outcome_of(lambda: job.run(path).close()))
    filler.unlink()
    tell(**outcome_of(lambda: job.run(path).close()), count=right_letters(path, 100))


def no_room_to_resume(folder: Path) -> None:
    """Full to the last byte between two runs; what is there stays readable."""
    mount(folder, "size=4m")
    filler = folder / "filler"
    path, job = folder / "letters.run", letters_job(40, chars=100)
    job.run(path, limit=20).close()
    fill(filler)
    tell(**outcome_of(lambda: job.run(path).close()), count=right_letters(path, 100))
    filler.unlink()
    tell(**outcome_of(lambda: job.run(path).close()), count=right_letters(path, 100))


def no_room_to_spool(folder: Path) -> None:
    """Full where a long list is kept until it is written."""
    mount(folder, "size=1m")
    os.environ["TMPDIR"] = str(folder)
    tell(
        **outcome_of(lambda: letters_job(60_000, chars=100, padding="x" * 100)),
        left=[entry.name for entry in folder.iterdir()],
    )


def no_room_for_the_end_of_a_spool(folder: Path) -> None:
    """Full at the very last byte of a list, which a buffer may still hold when all of the list was read."""
    os.environ["TMPDIR"] = str(folder)
    count, padding = 6_000, "x" * 1_000
    list_bytes = sum(1 + len(row) for row in letters_job(count, chars=100, padding=padding).scenarios.source.rows())
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (list_bytes - 1, most))
    tell(**outcome_of(lambda: letters_job(count, chars=100, padding=padding)))


def _fill_up_and_go_on(path: Path, make_room: Callable[[], object]) -> None:
    job = letters_job(COUNT, chars=CHARS, latency_s=0.002)
    for _ in range(2):  # the second time it is full from the start
        tell(**outcome_of(lambda: job.run(path, concurrency=40).close()), count=right_letters(path, CHARS))
    make_room()
    tell(**outcome_of(lambda: job.run(path, concurrency=40).close()), count=right_letters(path, CHARS))


globals()[sys.argv[1]](Path(sys.argv[2]))
