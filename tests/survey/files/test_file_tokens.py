import struct
from pathlib import Path

import pytest

from headrace import FileStore, Model, QuestionFreeText, Scenario, Survey
from headrace.survey.files.file_tokens import file_tokens
from headrace.survey.files.picture_size import pixels
from tests.pictures import pdf, png


@pytest.mark.parametrize(
    ("head", "size"),
    [
        (b"GIF89a" + struct.pack("<HH", 640, 480), (640, 480)),
        (
            b"\xff\xd8\xff\xe1\x00\x10" + b"x" * 14 + b"\xff\xd0\xff\xc0\x00\x11\x08" + struct.pack(">HH", 480, 640),
            (640, 480),
        ),
        (b"RIFF....WEBPVP8X" + b"\0" * 8 + (639).to_bytes(3, "little") + (479).to_bytes(3, "little"), (640, 480)),
        (b"RIFF....WEBPVP8 " + b"\0" * 10 + struct.pack("<HH", 640, 480), (640, 480)),
        (b"RIFF....WEBPVP8L" + b"\0" * 5 + (639 | 479 << 14).to_bytes(4, "little") + b"\0" * 9, (640, 480)),
        (b"BM", (0, 0)),
        (b"\xff\xd8\xff\xe1\x00\x00" * 5, (0, 0)),
        (b"\x89PNG", (0, 0)),
    ],
)
def test_a_pictures_size_is_read_from_its_header(head: bytes, size: tuple[int, int]):
    assert pixels(head) == size


@pytest.mark.parametrize(
    ("service", "model", "width", "height", "tokens"),
    [
        ("openai", "gpt-4o", 1024, 1024, 765),
        ("openai", "gpt-4o", 2048, 4096, 1105),
        ("openai", "gpt-4.1-mini", 1024, 1024, 1659),
        ("openai", "gpt-5-mini", 4096, 4096, 2489),
        ("anthropic", "claude-sonnet-4-5", 1000, 1000, 1334),
        ("anthropic", "claude-sonnet-4-5", 8000, 8000, 1600),
        ("google", "gemini-2.5-flash", 300, 300, 258),
        ("google", "gemini-2.5-flash", 960, 540, 516),
    ],
)
def test_pictures_take_what_services_say(
    tmp_path: Path, service: str, model: str, width: int, height: int, tokens: int
):
    file = FileStore(png(tmp_path / "a.png", width=width, height=height))
    assert file.pixels == (width, height)
    assert file_tokens(service, model, file) == tokens


def test_an_estimate_counts_files_and_a_run_is_near_it(tmp_path: Path):
    photos = [Scenario({"photo": FileStore(png(tmp_path / f"{n}.png", width=1024, height=1024))}) for n in range(3)]
    question = QuestionFreeText(question_name="q", question_text="What is in {{ scenario.photo }}?")
    job = Survey([question]).by(*photos).by(Model("test", canned_response="x", price={"input": 1, "output": 1}))
    estimate = job.estimate()
    assert 3 * 765 < estimate.input_tokens < 3 * 830
    with job.run(tmp_path / "a.run") as results:
        assert abs(results.stats().input_tokens - estimate.input_tokens) < 60
        assert results.stats().cost > 3 * 765e-6
    (cost, *_) = [row["estimated_cost"] for row in job.prompts()]
    assert cost > 765e-6
    report = FileStore(pdf(tmp_path / "a.pdf", "Hello"))
    assert file_tokens("openai", "gpt-4o", report) == 2_000
