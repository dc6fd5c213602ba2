"""A power cut at any moment: what was acknowledged is there, and no file is refused."""

import random
from contextlib import ExitStack, closing
from pathlib import Path

import apsw
import pytest

from headrace import Agent, Results
from headrace.store.logs import write_ahead_log
from headrace.store.run_file.rows import row_batch
from headrace.store.run_file.run_file import RunFile
from headrace.store.whole_files import verify
from tests.results import files
from tests.store.recording_vfs import Acknowledged, Recording, recorded

PEOPLE = 40
JOB = files.job(files.survey("one"), [Agent(name=f"p{number}") for number in range(PEOPLE)])


def a_run(path: Path, recording: Recording, chance: random.Random, first: int) -> int:
    """Journal some rows, bring the log in now and then, with a reader in the way now and then."""
    done = first
    with files.opened(path, JOB) as file, ExitStack() as readers:
        while done < PEOPLE and chance.random() < 0.95:
            if chance.random() < 0.15:
                reader = readers.enter_context(closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)))
                reader.execute("BEGIN; SELECT count(*) FROM interviews").fetchall()
            elif chance.random() < 0.3:
                readers.close()
            done = journal(file, done, min(chance.choice([1, 1, 3]), PEOPLE - done), chance)
            recording.events.append(Acknowledged(done))
            for _ in range(chance.choice([0, 0, 1, 4])):
                file.live._log.shorten(lambda: None)
        readers.close()
    return done


def journal(file: RunFile, first: int, count: int, chance: random.Random) -> int:
    rows = [files.row(file, JOB, at, ["yes" * chance.choice([1, 400])]) for at in range(first, first + count)]
    file.journal.commit([row_batch(rows)], [])
    return first + count


@pytest.mark.parametrize("seed", range(6))
def test_a_power_cut_at_any_moment_loses_no_acknowledged_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance, path = random.Random(seed), tmp_path / "live.run"
    monkeypatch.setattr(write_ahead_log, "_MOST_S", chance.choice([0.0, 5.0]))
    with files.opened(path, JOB):
        pass
    with recorded(path) as recording:
        a_run(path, recording, chance, a_run(path, recording, chance, 0))
    assert sum(isinstance(event, Acknowledged) for event in recording.events) > 5
    for number in range(20):
        moment, share = chance.randrange(len(recording.events)), chance.choice([0, 0.2, 0.5, 0.8, 1])
        left, rows = recording.after_power_cut(moment, share, chance)
        cut = tmp_path / f"cut-{number}"
        cut.mkdir()
        for name, data in left.items():
            if name:
                (cut / Path(name).name).write_bytes(data)
        with Results.open(cut / "live.run") as results:
            assert len(results) >= rows
        assert not verify(cut / "live.run").findings
