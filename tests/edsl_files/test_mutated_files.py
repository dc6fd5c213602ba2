"""Files of EDSL's with something else in them: read, or refused in words, and never another error."""

import copy
import random
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headrace import AgentList, Job, ModelList, Results, ScenarioList, Survey
from headrace.errors import HeadraceError
from tests.edsl_files.data_files import DATA, held_in

OTHERS = [
    None, 7, -1, 2.5, "x", "", [], {}, [1], {"a": 1}, True, float("nan"), 10**30, "{{ x }}", [[]], "\ud800",
    {"path": "a", "base64_string": "QQ=="},
]  # fmt: skip
READERS = {
    "survey": Survey.from_edsl,
    "every_kind": Survey.from_edsl,
    "agents": AgentList.from_edsl,
    "scenarios": ScenarioList.from_edsl,
    "models": ModelList.from_edsl,
    "job": Job.from_edsl,
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*at, key))


def mutated(held: Any, draw: random.Random) -> Any:
    """The same with one value replaced or removed."""
    changed = copy.deepcopy(held)
    *path, last = draw.choice(list(places(changed)))
    inside = changed
    for key in path:
        inside = inside[key]
    if draw.random() < 0.8:
        inside[last] = draw.choice(OTHERS)
    else:
        del inside[last]
    return changed


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore::headrace.errors.HeadraceWarning")
def test_a_study_with_another_value_somewhere_is_read_or_refused(name):
    held, draw = held_in(f"{name}.json.gz"), random.Random(name)
    for _ in range(80):
        with suppress(HeadraceError):
            READERS[name](mutated(held, draw))


@pytest.mark.filterwarnings("ignore::headrace.errors.HeadraceWarning")
def test_results_with_another_value_somewhere_are_imported_or_refused(tmp_path):
    held, draw, path = held_in("results.json.gz"), random.Random(1), tmp_path / "x.run"
    held["data"] = held["data"][:2]
    for _ in range(25):
        with suppress(HeadraceError), Results.from_edsl(mutated(held, draw), path) as results:
            results.select("answer.*", "agent.*", "prompt.*").to_list()
        path.unlink(missing_ok=True)
    assert list(tmp_path.iterdir()) in ([], [tmp_path / "x.files"])


@pytest.mark.parametrize("name", ["survey.ep", "job.ep", "job.json.gz", "agents.ep"])
def test_files_with_flipped_bytes_are_read_or_refused(name, tmp_path):
    whole, draw, path = (DATA / name).read_bytes(), random.Random(name), tmp_path / name
    read = READERS[Path(name).name.partition(".")[0]]
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(draw.choice((1, 3, 20))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        path.write_bytes(changed[: draw.choice((len(changed), draw.randrange(1, len(changed))))])
        with warnings.catch_warnings(), suppress(HeadraceError):
            warnings.simplefilter("ignore")  # zipfile's own too: two files of one name
            read(path)
