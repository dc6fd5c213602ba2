import errno
import os
import pickle
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from headrace import FileStore, Scenario, ScenarioList
from headrace.errors import FileUnusable, ListError
from headrace.survey.files import file_contents
from headrace.survey.files.checked_file import CheckedFile, blocks_of
from headrace.survey.files.file_contents import BLOCK_BYTES
from headrace.survey.files.file_types import FileKind
from headrace.survey.values import check_fields, decode_fields, encode_fields, without_paths
from tests.pictures import pdf, png, wav


def test_a_file_is_a_reference_that_comes_back_from_its_stored_form(tmp_path: Path):
    file = FileStore(png(tmp_path / "cat.png"))
    row, _ = encode_fields({"photo": file, "more": [file], "name": "Tom"})
    found = decode_fields(row)
    assert found["photo"] == file
    assert found["more"] == [file]
    assert (file.suffix, file.mime_type, file.size) == ("png", "image/png", (tmp_path / "cat.png").stat().st_size)
    assert pickle.loads(pickle.dumps(file)) == file
    check_fields([row])
    assert len(row) < 600


def test_data_that_looks_like_a_file_stays_data(tmp_path: Path):
    stored = FileStore(png(tmp_path / "cat.png")).to_stored()
    for fields in ({"a": {"$file": stored}}, {"$file": stored}, {"a": [{"$file": stored, "b": 1}]}):
        row, _ = encode_fields(fields)
        assert decode_fields(row) == fields
        assert without_paths(row) == row


@pytest.mark.parametrize(
    "damage",
    [{"bytes": -1}, {"bytes": "1"}, {"digest": "x"}, {"path": "a\0b"}, {"type": 'image/png","x":"'}, {"width": -1}],
)
def test_a_reference_that_cannot_be_is_none(tmp_path: Path, damage: dict[str, Any]):
    stored = {**FileStore(png(tmp_path / "cat.png")).to_stored(), **damage}
    with pytest.raises(msgspec.ValidationError):
        decode_fields(msgspec.json.encode({"photo": {"$file": stored}}))
    with pytest.raises(ListError, match="no media type"):
        FileStore(tmp_path / "cat.png", mime_type="image png")


def test_a_list_is_the_same_wherever_its_files_lie(tmp_path: Path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        png(tmp_path / name / "cat.png")
    one, other = (
        ScenarioList([Scenario.from_file(tmp_path / name / "cat.png", field_name="photo")]) for name in ("one", "other")
    )
    assert one.digest == other.digest
    png(tmp_path / "other" / "cat.png", shade=9)
    assert one.digest != ScenarioList([{"photo": FileStore(tmp_path / "other" / "cat.png")}]).digest


@pytest.mark.parametrize(
    ("name", "kind"), [("a.png", FileKind.IMAGE), ("a.pdf", FileKind.PDF), ("a.wav", FileKind.AUDIO)]
)
def test_its_first_bytes_say_what_a_file_is(tmp_path: Path, name: str, kind: FileKind):
    made = {"png": png, "pdf": pdf, "wav": wav}[name[-3:]](tmp_path / name)
    assert FileStore(made).kind is kind
    renamed = made.rename(tmp_path / "picture.jpg")
    assert FileStore(renamed).kind is kind


def test_a_text_file_is_one_whatever_it_is_called(tmp_path: Path):
    for name in ("notes.md", "notes", "notes.xyz"):
        (tmp_path / name).write_text("Grüße")
        assert FileStore(tmp_path / name).kind is FileKind.TEXT


@pytest.mark.parametrize("name", ["error.png", "error.jpg", "error.pdf"])
def test_a_picture_that_is_none_is_refused_with_its_path(tmp_path: Path, name: str):
    (tmp_path / name).write_text("<html>404</html>")
    with pytest.raises(ListError, match=rf"{name} is no (picture|PDF): it begins with b'<html>404</h'"):
        FileStore(tmp_path / name)


def test_what_is_no_file_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "empty.png").touch()
    os.mkfifo(tmp_path / "pipe.png")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(tmp_path)  # a socket's path must be short
        listening.bind("socket.png")
        for path, why in (
            (tmp_path / "empty.png", "is empty"),
            (tmp_path, "is a directory"),
            (tmp_path / "pipe.png", "no file but something else"),
            (tmp_path / "socket.png", "cannot be read"),
            (tmp_path / "missing.png", "No such file"),
            ("https://example.org/cat.png", "is an address"),
            (tmp_path / "odd\udcff.png", "is not Unicode"),
            ("a\0b", "no path"),
            (7, "no path"),
        ):
            with pytest.raises(ListError, match=why):
                FileStore(path)  # pyright: ignore[reportArgumentType]


def test_a_file_without_rights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = png(tmp_path / "cat.png")
    file = FileStore(path)

    def refuse(*_: object) -> int:  # root may read everything, and tests may be run as root
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(file_contents.os, "open", refuse)
    with pytest.raises(ListError, match="cannot be read: Permission denied"):
        FileStore(path)
    with pytest.raises(FileUnusable, match="cannot be sent: Permission denied"):
        next(blocks_of(file))


@pytest.mark.parametrize("filler_bytes", [100, 3 * BLOCK_BYTES])
def test_of_a_file_with_another_digest_not_even_a_first_block_is_given_out(tmp_path: Path, filler_bytes: int):
    """A mailed run file may name any path here, and its size can be guessed."""
    path = png(tmp_path / "cat.png", filler_bytes=filler_bytes)
    claimed = FileStore.from_stored({**FileStore(path).to_stored(), "digest": "0" * 32})
    with pytest.raises(FileUnusable, match="changed since it was referred to"):
        next(blocks_of(claimed))


def test_a_file_that_changes_while_it_is_read_is_never_given_out_whole(tmp_path: Path):
    path = png(tmp_path / "cat.png", filler_bytes=3 * BLOCK_BYTES)
    file = FileStore(path)
    assert b"".join(blocks_of(file)) == path.read_bytes()
    blocks = blocks_of(file)
    given = [next(blocks)]
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    given += [next(blocks) for _ in range(2)]
    with pytest.raises(FileUnusable, match="changed since it was referred to"):
        next(blocks)
    assert sum(map(len, given)) < file.size
    path.write_bytes(content + b"more")
    with pytest.raises(FileUnusable, match="bytes now, and had"):
        list(blocks_of(file))
    path.unlink()
    with pytest.raises(FileUnusable, match="No such file"):
        list(blocks_of(file))


def test_a_file_that_shrinks_while_it_is_read_is_refused(tmp_path: Path):
    path = png(tmp_path / "cat.png", filler_bytes=3 * BLOCK_BYTES)
    reading = CheckedFile(FileStore(path))
    assert len(reading.next_block()) == BLOCK_BYTES
    os.truncate(path, BLOCK_BYTES + 10)
    with pytest.raises(FileUnusable, match="shorter while it was read"):
        reading.next_block()
    reading.close()


def test_a_file_larger_than_any_service_takes_is_refused_unread(tmp_path: Path):
    with (tmp_path / "film.mp4").open("wb") as file:
        file.truncate(3_000_000_000)
    with pytest.raises(ListError, match=r"film.mp4 has 3.0 GB; no service takes files above 512 MB"):
        FileStore(tmp_path / "film.mp4")


def test_a_large_sparse_file_is_digested_in_little_memory(tmp_path: Path):
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.write(b"\1")
        file.truncate(100_000_000)
    assert FileStore(path).size == 100_000_000
