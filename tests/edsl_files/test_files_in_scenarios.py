"""Files that EDSL holds inside scenarios, as files of their own."""

import hashlib
import json
from pathlib import Path

import pytest

from headrace import FileStore, Job, Model, QuestionFreeText, Results, ScenarioList, Survey
from headrace.edsl_files.file_import import import_file
from headrace.errors import EdslFileError
from tests.edsl_files.data_files import DATA, held_in, noted


@pytest.mark.parametrize("form", [".json.gz", ".ep"])
def test_files_are_written_once_by_their_content_for_their_owner_alone(form, tmp_path):
    source = tmp_path / f"trip{form}"
    source.write_bytes((DATA / f"files{form}").read_bytes())
    scenarios = ScenarioList.from_edsl(source)
    first, second = scenarios
    assert isinstance(first["photo"], FileStore)
    assert (first["photo"].suffix, first["photo"].mime_type) == ("png", "image/png")
    assert first["note"].text == "Ça va."
    assert (first["n"], second["n"]) == (1, 2)
    assert first["photo"] == second["photo"]
    kept = sorted((tmp_path / "trip.files").glob("*/*"), key=lambda path: path.name)
    assert [path.name for path in kept] == ["dot.png", "note.txt"]
    assert first["photo"].name == "dot.png"
    for path in kept:
        assert path.parent.name == hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "trip.files").stat().st_mode & 0o777 == 0o700


def test_loading_a_list_of_edsls_makes_files_too(tmp_path):
    (tmp_path / "trip.json.gz").write_bytes((DATA / "files.json.gz").read_bytes())
    for read in (ScenarioList.load, ScenarioList.from_file):
        assert read(tmp_path / "trip.json.gz")[0]["note"].text == "Ça va."


def test_a_dict_needs_a_folder_for_its_files(tmp_path):
    with noted() as notes:
        scenarios = ScenarioList.from_edsl(held_in("files.json.gz"))
    assert scenarios[0]["photo"] == "dot.png"
    assert "for which there is no folder" in notes[0]
    assert isinstance(ScenarioList.from_edsl(held_in("files.json.gz"), files=tmp_path)[0]["photo"], FileStore)


def test_a_path_without_content_is_never_opened(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("a key", "utf-8")
    held = held_in("files.json.gz")
    for fields in held["scenarios"]:
        fields["note"] |= {"path": str(secret), "base64_string": "offloaded"}
    with noted() as notes:
        scenarios = ScenarioList.from_edsl(held, files=tmp_path / "files")
    assert scenarios[0]["note"] == str(secret)
    assert notes == [
        "the file in the scenarios' field 'note', whose content EDSL left out: the field has its path (2 times)"
    ]


def test_names_in_a_study_lead_nowhere_else(tmp_path):
    held = held_in("files.json.gz")
    for fields in held["scenarios"]:
        fields["note"]["suffix"] = "../../x"
        fields["note"]["path"] = "a/../../../.x\0.txt"
        fields["photo"]["path"] = "C:\\pets\\..\\cat (1).png"
    ScenarioList.from_edsl(held, files=tmp_path / "files")
    assert [path.name for path in tmp_path.iterdir()] == ["files"]
    made = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    assert sorted(path.name for path in made) == ["cat (1).png", "file"]
    assert all(path.parent.parent == tmp_path / "files" for path in made)


def test_a_picture_that_is_none_is_noted(tmp_path):
    held = held_in("files.json.gz")
    held["scenarios"][0]["photo"]["base64_string"] = "QUJD"
    with noted() as notes:
        scenarios = ScenarioList.from_edsl(held, files=tmp_path / "files")
    assert scenarios[0]["photo"] == "dot.png"
    assert len(notes) == 1


def test_a_changed_file_in_a_package_is_refused(tmp_path):
    import zipfile

    broken = tmp_path / "x.ep"
    with zipfile.ZipFile(DATA / "files.ep") as source, zipfile.ZipFile(broken, "w") as target:
        for name in source.namelist():
            target.writestr(name, b"other" if name.startswith("files/") else source.read(name))
    with pytest.raises(EdslFileError, match="is not as it was saved"):
        ScenarioList.from_edsl(broken)


def test_the_command_puts_files_beside_what_it_makes(tmp_path):
    made = import_file(DATA / "files.ep", tmp_path / "trip.jsonl")
    assert made.notes.notes == ()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trip.files", "trip.jsonl"]
    lines = (tmp_path / "trip.jsonl").read_text("utf-8").splitlines()
    assert len(lines) == 2


def test_results_about_files_go_to_edsl_without_their_content(tmp_path):
    note = tmp_path / "note.txt"
    note.write_text("hello", "utf-8")
    question = QuestionFreeText(question_name="q", question_text="About {{ scenario.doc.text }}?")
    model = Model("test", canned_response="yes")
    results = Job(Survey([question]), scenarios=[{"doc": FileStore(note)}], models=model).run(
        tmp_path / "x.run", progress_bar=False
    )
    with noted() as notes:
        results.to_edsl(tmp_path / "x.json")
    doc = json.loads((tmp_path / "x.json").read_text("utf-8"))["data"][0]["scenario"]["doc"]
    assert (doc["base64_string"], Path(doc["path"]).name) == ("offloaded", "note.txt")
    assert notes == ["the content of files in the scenarios' field 'doc', as EDSL does in results"]
    with noted() as notes:
        again = Results.from_edsl(tmp_path / "x.json", tmp_path / "again.run")
    assert again[0].scenario["doc"] == doc["path"]
    assert "whose content EDSL left out" in notes[0]
