import os
import time
from pathlib import Path

import pytest

from headrace import FileStore, Model, QuestionFreeText, Scenario, Survey
from headrace.errors import FileUnusable
from headrace.models.provider import Request
from headrace.survey.files import file_text
from headrace.survey.files.file_text import MOST_TEXT_BYTES, NOT_WAITING, TextNeeded
from tests.pictures import pdf, pdf_bomb, pdf_of_streams, png


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_text, "_kept", file_text._KeptTexts())


def test_the_text_of_a_text_file_and_of_a_pdf(tmp_path: Path):
    (tmp_path / "a.md").write_text("# Grüße\n", "utf-8")
    (tmp_path / "b.txt").write_bytes("Grüße".encode("utf-16"))
    assert FileStore(tmp_path / "a.md").text == "# Grüße\n"
    assert FileStore(tmp_path / "b.txt", mime_type="text/plain").extract_text() == "Grüße"
    assert FileStore(pdf(tmp_path / "c.pdf", "First page", "Second")).text == "First page\nSecond\n"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.txt", b"one\n\xe9t\xe9\n", "line 2 is not UTF-8"),
        ("a.pdf", b"%PDF-1.4\nnothing else", "cannot be read as a PDF"),
        ("a.zip", b"PK\3\4\0", "no text is read from a file of this type"),
    ],
)
def test_a_file_without_text_says_why(tmp_path: Path, name: str, content: bytes, why: str):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileUnusable, match=f"{name} cannot be read as text: .*{why}"):
        _ = FileStore(tmp_path / name).text


def test_a_pdf_of_pictures_has_no_text(tmp_path: Path):
    a_square = b"0 0 100 100 re f"
    with pytest.raises(FileUnusable, match=r"its pages hold no text.*send the file itself"):
        _ = FileStore(pdf_of_streams(tmp_path / "scan.pdf", [(b"", a_square), (b"", a_square)])).text
    partly = pdf_of_streams(tmp_path / "b.pdf", [(b"", a_square), (b"", b"BT /F1 12 Tf 72 720 Td (Two) Tj ET")])
    assert FileStore(partly).text == "\nTwo\n"


def test_a_text_that_no_model_would_read_is_refused_unread(tmp_path: Path):
    (tmp_path / "a.txt").write_bytes(b"a" * (MOST_TEXT_BYTES + 1))
    with pytest.raises(FileUnusable, match="larger than 16 MB"):
        _ = FileStore(tmp_path / "a.txt").text


def test_a_pdf_bomb_costs_a_process_and_no_memory_here(tmp_path: Path):
    bomb = FileStore(pdf_bomb(tmp_path / "bomb.pdf", unpacked_bytes=400_000_000))
    assert bomb.size < 1_000_000
    before, started_s = _resident_bytes(), time.monotonic()
    with pytest.raises(FileUnusable, match="takes more memory or time than a document does"):
        _ = bomb.text
    assert _resident_bytes() - before < 50_000_000
    assert time.monotonic() - started_s < 100


def test_a_pdf_whose_pages_hold_themselves_ends(tmp_path: Path):
    path = pdf_of_streams(tmp_path / "a.pdf", [(b"", b"")])
    path.write_bytes(path.read_bytes().replace(b"[4 0 R] /Count 1", b"[2 0 R] /Count 9"))
    with pytest.raises(FileUnusable, match="cannot be read as a PDF"):
        _ = FileStore(path).text


def test_a_pdf_that_changed_is_not_read(tmp_path: Path):
    file = FileStore(pdf(tmp_path / "a.pdf", "First"))
    pdf(tmp_path / "a.pdf", "Other")
    with pytest.raises(FileUnusable, match="changed since it was referred to"):
        _ = file.text


def test_a_pipe_in_place_of_a_pdf_is_not_waited_for(tmp_path: Path):
    path = pdf(tmp_path / "a.pdf", "Words.")
    file = FileStore(path)
    path.unlink()
    os.mkfifo(path)
    began = time.monotonic()
    with pytest.raises(FileUnusable, match="it is no file but something else"):
        _ = file.text
    assert time.monotonic() - began < 30


def test_where_nothing_may_wait_a_text_is_asked_for_and_then_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = FileStore(pdf(tmp_path / "a.pdf", "Hello"))
    monkeypatch.setattr(NOT_WAITING, "is_on", True)
    with pytest.raises(TextNeeded) as needed:
        _ = file.text
    with NOT_WAITING.lifted():
        needed.value.load()
    assert file.text == "Hello\n"


def test_only_so_many_letters_are_kept():
    kept = file_text._KeptTexts()
    for number in range(10):
        kept.put(str(number), "x" * 3_000_000)
    assert [number for number in range(10) if kept.get(str(number))] == [8, 9]


@pytest.mark.parametrize(
    "text", ["{{ scenario.doc.text }}", "{{ scenario.doc.extract_text()[:5] }}", "{{ scenario.notes }}"]
)
def test_a_prompt_has_a_files_text(tmp_path: Path, text: str):
    (tmp_path / "notes.txt").write_text("Hello, notes")
    scenario = Scenario(
        {"doc": FileStore(pdf(tmp_path / "a.pdf", "Hello, PDF")), "notes": FileStore(tmp_path / "notes.txt")}
    )
    seen: list[Request] = []

    def answer(request: Request) -> str:
        seen.append(request)
        return "x"

    question = QuestionFreeText(question_name="q", question_text=f"Sum up: {text}")
    Survey([question]).by(scenario).by(Model("test", canned_response=answer)).run(tmp_path / "a.run").close()
    assert seen[0].user_prompt.startswith("Sum up: Hello")
    assert seen[0].files == ()


def test_a_file_whose_text_cannot_be_read_fails_its_interview_alone(tmp_path: Path):
    question = QuestionFreeText(question_name="q", question_text="{{ scenario.doc.text }}")
    docs = [Scenario({"doc": FileStore(made)}) for made in (pdf(tmp_path / "a.pdf", "Hi"), png(tmp_path / "b.png"))]
    job = Survey([question]).by(*docs).by(Model("test", canned_response="x"))
    with job.run(tmp_path / "a.run") as results:
        assert [result.answer["q"] for result in results] == ["x", None]
        assert "b.png cannot be read as text: no text is read from a picture" in results[1].failures[0].message


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
