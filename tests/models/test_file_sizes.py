"""Files that are too large for a service: refused, or made smaller."""

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from headrace import FileStore, Model, QuestionFreeText, Scenario, Survey
from headrace.errors import FileUnusable, ListError, SurveyError
from headrace.models.provider import Reply, Request
from headrace.survey.files import smaller_pictures
from headrace.survey.files.marks import mark_of, split
from headrace.survey.files.size_limits import SizeLimit
from headrace.survey.files.smaller_pictures import SmallerPictures
from tests.models.asking import TEXT, ask
from tests.models.server import HostileServer
from tests.pictures import noise, pdf, picture_bomb, png


@pytest.fixture
def server():
    with HostileServer() as running:
        yield running


@pytest.fixture(autouse=True)
def _pictures_of_this_test(monkeypatch: pytest.MonkeyPatch):
    made = SmallerPictures()
    monkeypatch.setattr("headrace.models.http_client.fitted_files.SMALLER", made)
    yield
    if made._directory is not None:
        made._directory.cleanup()


def a_request(file: FileStore) -> Request:
    prompt, files = split(f"See {mark_of(file)}")
    return Request("q", "", prompt, TEXT, {}, {}, 0, 1, files=files)


def a_model(server: HostileServer, **parameters: Any) -> Model:
    return Model("m", service_name="anthropic", base_url=server.url, timeout_s=20.0, **parameters)


def test_what_is_too_large_is_refused_with_the_limit(server: HostileServer, tmp_path: Path):
    large = png(tmp_path / "a.png", filler_bytes=4_000_000)
    (refused,) = ask(a_model(server), a_request(FileStore(large)))
    assert isinstance(refused, FileUnusable)
    assert "it has 4.0 MB, and anthropic takes 3.9 MB at most" in refused.message
    (taken,) = ask(a_model(server, max_file_bytes=5_000_000), a_request(FileStore(large)))
    assert isinstance(taken, Reply)
    wide = FileStore(png(tmp_path / "b.png", width=9_000, height=2))
    assert "9,000 x 2 pixels" in str(SizeLimit("anthropic").why_too_large(wide))
    assert SizeLimit("ollama").why_too_large(FileStore(large)) is None
    report = FileStore(pdf(tmp_path / "c.pdf", "x" * 2_000))
    assert "send a part of it" in str(SizeLimit("openai", 1024).why_too_large(report))


def test_a_run_is_refused_where_its_first_prompt_shows_it(server: HostileServer, tmp_path: Path):
    question = QuestionFreeText(question_name="q", question_text="{{ scenario.photo }}?")
    photo = FileStore(png(tmp_path / "a.png", filler_bytes=4_000_000))
    with pytest.raises(SurveyError, match=r"anthropic takes 3\.9 MB at most"):
        Survey([question]).by(Scenario({"photo": photo})).by(a_model(server)).run(tmp_path / "a.run")
    with pytest.raises(ListError, match="too_large='shrink' is not known"):
        FileStore(tmp_path / "a.png", too_large="shrink")  # pyright: ignore[reportArgumentType]


def test_a_smaller_copy_is_sent_by_choice(server: HostileServer, tmp_path: Path):
    file = FileStore(noise(tmp_path / "a.png", width=700, height=500), too_large="resize")
    replies = ask(a_model(server, max_file_bytes=100_000), a_request(file), a_request(file))
    assert all(isinstance(reply, Reply) for reply in replies), replies
    source = server.last.content[1]["source"]
    sent = base64.b64decode(source["data"])
    assert source["media_type"] == "image/jpeg"
    assert len(sent) <= 100_000
    with Image.open(io.BytesIO(sent)) as picture:
        assert abs(picture.width / picture.height - 1.4) < 0.02


def test_a_picture_that_hides_its_size_is_refused_undecoded(server: HostileServer, tmp_path: Path):
    bomb = FileStore(picture_bomb(tmp_path / "a.png", side=20_000), too_large="resize")
    assert bomb.size < 100_000
    (refused,) = ask(a_model(server), a_request(bomb))
    assert isinstance(refused, FileUnusable)
    assert "more than 100 million pixels" in refused.message
    broken = png(tmp_path / "b.png", filler_bytes=200_000)
    broken.write_bytes(broken.read_bytes().replace(b"IDAT", b"JUNK"))
    (refused,) = ask(a_model(server, max_file_bytes=100_000), a_request(FileStore(broken, too_large="resize")))
    assert isinstance(refused, FileUnusable)
    assert "it cannot be made smaller" in refused.message
    assert server.calls == 0


def test_transparent_pictures_are_shown_on_white(tmp_path: Path):
    Image.new("RGBA", (40, 40), (255, 0, 0, 0)).save(tmp_path / "a.png")
    made = SmallerPictures()
    smaller = made.take(FileStore(tmp_path / "a.png"), 50_000, None)
    with Image.open(smaller.path) as picture:
        assert picture.getpixel((20, 20)) == (255, 255, 255)
    assert made._directory is not None
    made._directory.cleanup()


def test_only_the_latest_smaller_pictures_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(smaller_pictures, "_MOST_KEPT", 1)
    made = SmallerPictures()
    files = [FileStore(png(tmp_path / f"{n}.png", shade=n)) for n in range(3)]
    smaller = [made.take(file, 50_000, None) for file in files]
    assert made.take(files[0], 50_000, None) == smaller[0]
    made.give_back(files[0], 50_000)
    assert [Path(each.path).exists() for each in smaller] == [True] * 3
    for file in files:
        made.give_back(file, 50_000)
    assert sum(Path(each.path).exists() for each in smaller) == 1
    assert made._directory is not None
    made._directory.cleanup()
