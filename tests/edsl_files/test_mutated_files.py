"""Files of EDSL's with something else in them: read, or refused in words, and never another error."""

import copy
import json
import random
import shutil
import struct
import warnings
import zipfile
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


@pytest.mark.filterwarnings("ignore::headrace.errors.HeadraceWarning")
def test_results_in_a_package_that_was_changed_are_refused_in_words(tmp_path):
    held = bytearray((DATA / "results.ep").read_bytes())
    with zipfile.ZipFile(DATA / "results.ep") as archive:
        entry = archive.getinfo("results.jsonl")
    at = held.index(struct.pack("<I", entry.CRC), archive.start_dir)  # as the list of names has it
    held[at] ^= 1
    (tmp_path / "results.ep").write_bytes(held)
    with pytest.raises(HeadraceError, match=r"results\.ep cannot be read: .*CRC"):
        Results.from_edsl(tmp_path / "results.ep", tmp_path / "x.run")
    assert not (tmp_path / "x.run").exists()


@pytest.mark.filterwarnings("ignore::headrace.errors.HeadraceWarning")
def test_what_a_package_holds_beside_its_object_is_neither_executed_nor_unpacked(tmp_path):
    marker, package = tmp_path / "executed", tmp_path / "survey.ep"
    shutil.copy(DATA / "survey.ep", package)
    hook = zipfile.ZipInfo(".git/hooks/post-checkout")
    hook.external_attr = 0o100755 << 16
    link = zipfile.ZipInfo("metadata/name.json.link")
    link.external_attr = 0o120777 << 16
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(package, "a") as archive:  # .git/config twice
        archive.writestr(hook, f"#!/bin/sh\ntouch {marker}\n")
        archive.writestr(".git/config", f"[core]\n\tfsmonitor = touch {marker}\n\thooksPath = .git/hooks\n")
        archive.writestr(".gitmodules", f'[submodule "x"]\n\tpath = x\n\turl = ext::touch {marker}\n')
        for name in ("../escaped.json", "/tmp/../escaped.json", "questions/../../escaped.json", "C:\\escaped.json"):
            archive.writestr(name, "{}")
        archive.writestr(link, "/etc/passwd")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert Survey.from_edsl(package).to_dict() == Survey.from_edsl(DATA / "survey.ep").to_dict()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("names", [["../../../../etc/passwd"], ["/etc/hostname"], ["000001", {"a": 1}], [None]])
def test_names_in_a_manifest_reach_nothing_outside_the_package(tmp_path, names):
    path = tmp_path / "survey.ep"
    with zipfile.ZipFile(DATA / "survey.ep") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            held = old.read(name)
            if name == "manifest.json":
                held = json.dumps({**json.loads(held), "question_order": names}).encode()
            new.writestr(name, held)
    with pytest.raises(HeadraceError, match="is not in it"):
        Survey.from_edsl(path)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_package_whose_files_unpack_without_a_bound_is_refused(tmp_path, method):
    path = tmp_path / "survey.ep"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("manifest.json", " " * 10_000_000)
    with pytest.raises(HeadraceError, match="packed in a way that EDSL does not use"):
        Survey.from_edsl(path)
