"""What an address file may hold, and when a change of it counts."""

import os
from pathlib import Path

import pytest

from headrace import Model
from headrace.errors import ListError
from headrace.models.http_client.address_file import AddressFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "endpoints.txt"


def read(path: Path, held: bytes) -> tuple[str, ...]:
    path.write_bytes(held)
    return AddressFile("m", str(path)).read()


def test_blank_lines_comments_and_repetitions_are_left_out(path):
    held = b"\xef\xbb\xbf# ours\r\n http://a:8000/v1/\r\n\r\n\thttps://b.example.org/v1?x=1 # the new one\n#http://c\n"
    assert read(path, held) == ("http://a:8000/v1", "https://b.example.org/v1?x=1")
    assert read(path, b"http://a:8000/v1\nhttp://a:8000/v1/\nhttp://b") == ("http://a:8000/v1", "http://b")


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"", "has no address."),
        (b"http://a\n\n\nhost:8000\n", "has no address in line 4."),
        (b"http://a http://b\n", "has no address in line 1."),
        ("# Büro\nhttp://büro:8000\n".encode(), "has no address in line 2."),
        (b"http://a\nfile:///etc/passwd\n", "has no address in line 2."),
        (b"http://a\n" + b"\xff" * 9, "has no address in line 2."),
        (b"".join(b"http://a:%d/v1\n" % port for port in range(1, 1_002)), "has 1,001 addresses; 1,000 are the most."),
        (b"# " + b"x" * (1 << 20), "is larger than 1,048,576 bytes."),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_the_line(path, held, said):
    with pytest.raises(ListError) as raised:
        read(path, held)
    assert raised.value.message == f"Model 'm': its address file {path} {said}"


def test_a_secret_in_a_line_is_refused_and_not_quoted(path):
    for line in (b"http://user:hunter2@a/v1", b"http://a/v1?api_key=hunter2"):
        with pytest.raises(ListError, match=r"endpoints.txt, line 2: .*base_url holds a") as raised:
            read(path, b"http://a\n" + line)
        assert "hunter2" not in str(raised.value)


def test_a_pipe_and_a_folder_are_refused_without_waiting(path):
    os.mkfifo(path)
    with pytest.raises(ListError, match="is no file"):
        AddressFile("m", str(path)).read()
    with pytest.raises(ListError, match="is no file"):
        AddressFile("m", str(path.parent)).read()


def test_the_path_is_found_from_where_the_program_began(path, monkeypatch):
    path.write_text("http://a\n")
    monkeypatch.chdir(path.parent)
    monkeypatch.setenv("HOME", str(path.parent))
    files = [AddressFile("m", written) for written in ("endpoints.txt", "~/endpoints.txt")]
    monkeypatch.chdir("/")
    assert [file.read() for file in files] == [("http://a",)] * 2


def test_only_a_model_whose_address_begins_so_has_a_file():
    assert AddressFile.of(Model("gpt-4o")) is None
    assert AddressFile.of(Model("m", base_url=["http://a", "http://b"])) is None
    assert AddressFile.of(Model("m", base_url="@/a/b.txt")).path == Path("/a/b.txt")


def replaced(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text)
    other.replace(path)


def test_a_change_counts_once_two_looks_have_found_it_the_same(path):
    path.write_text("http://a\n")
    file = AddressFile("m", str(path))
    assert file.read() == ("http://a",)
    assert [file.look(), file.look()] == [None, None]
    path.write_text("")  # an editor begins to write
    assert file.look() is None
    path.write_text("http://a\nhttp://b\n")
    assert [file.look(), file.look(), file.look()] == [None, ("http://a", "http://b"), None]
    replaced(path, "http://c\n")
    assert [file.look(), file.look(), file.look()] == [None, ("http://c",), None]


def test_a_file_that_changes_before_every_look_is_read_all_the_same(path):
    path.write_text("http://a\n")
    file = AddressFile("m", str(path))
    file.read()
    found = []
    for number in range(6):
        replaced(path, f"http://{number}\n")
        found.append(file.look())
    assert found == [None, None, ("http://2",), None, None, ("http://5",)]


def test_a_file_that_is_gone_is_an_error_until_it_is_back(path):
    path.write_text("http://a\n")
    file = AddressFile("m", str(path))
    file.read()
    path.unlink()
    assert file.look() is None  # for a moment
    for _ in range(3):
        with pytest.raises(ListError, match="No such file"):
            file.look()
    path.write_text("x")
    assert file.look() is None
    with pytest.raises(ListError, match="line 1"):
        file.look()
    assert [file.look(), file.look()] == [None, None]  # it is still the same
    path.write_text("http://a\n")
    assert [file.look(), file.look()] == [None, ("http://a",)]
