"""A file that a scenario's field refers to: its path, digest, size and type. Covers: making one, and its stored form.

Nothing of a file's content is held here. Templates get these objects, and a template may come with a file from
elsewhere: what is public here only reads, and only the file as it was digested.
Does not cover: reading and sending it (survey.files.checked_file, models.http_client.file_bodies).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

import msgspec

from headrace.errors import ListError
from headrace.missing_names import ExplainedNames
from headrace.survey.files.checked_file import digested
from headrace.survey.files.file_text import text_of
from headrace.survey.files.file_types import HEAD_BYTES, MEDIA_TYPE, FileKind, kind_of_type, media_type
from headrace.survey.files.picture_size import pixels
from headrace.units import format_bytes

_SHORT_DIGEST = 12


# What is done with a picture that the service would not take by its size.
TooLarge: TypeAlias = Literal["refuse", "resize"]


class _StoredFile(msgspec.Struct, omit_defaults=True):
    """A reference as rows hold it. A row may come with a file from elsewhere: what cannot be is no reference."""

    path: Annotated[str, msgspec.Meta(pattern=r"^[^\x00]+$")]
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    bytes: Annotated[int, msgspec.Meta(ge=1)]
    type: Annotated[str, msgspec.Meta(pattern=MEDIA_TYPE)]
    width: Annotated[int, msgspec.Meta(ge=0)] = 0
    height: Annotated[int, msgspec.Meta(ge=0)] = 0
    too_large: TooLarge = "refuse"


class FileStore(ExplainedNames):
    """`FileStore("cat.png")` is a picture or document for a scenario's field: `Scenario({"photo": FileStore(path)})`.

    The file is read once, to digest it, and again whenever it is sent; one that changed meanwhile is not sent. A
    picture that is too large for a service is refused, or a smaller copy is sent: `too_large="resize"`.
    """

    __slots__ = ("digest", "height", "kind", "mime_type", "path", "size", "too_large", "width")

    def __init__(self, path: str | Path, mime_type: str | None = None, *, too_large: TooLarge = "refuse") -> None:
        absolute = _checked_path(path)
        if too_large not in ("refuse", "resize"):
            raise ListError(f"too_large={too_large!r} is not known.", fix='Write "refuse" or "resize".')
        digest, size, head = digested(absolute)
        found = media_type(absolute, head[:HEAD_BYTES], mime_type)
        self._set(_StoredFile(absolute, digest, size, found, *pixels(head), too_large))

    def _set(self, held: _StoredFile) -> None:
        self.path, self.digest, self.size, self.mime_type = held.path, held.digest, held.bytes, held.type
        self.width, self.height = held.width, held.height
        self.too_large: TooLarge = held.too_large
        self.kind = kind_of_type(held.type)

    @classmethod
    def from_stored(cls, stored: Any) -> Self:
        """The reverse of `to_stored`. It reads no file, and raises msgspec.ValidationError where it is none."""
        made = cls.__new__(cls)
        made._set(msgspec.convert(stored, _StoredFile))
        return made

    def to_stored(self) -> dict[str, Any]:
        """The reference as JSON."""
        return msgspec.to_builtins(
            _StoredFile(self.path, self.digest, self.size, self.mime_type, self.width, self.height, self.too_large)
        )

    @property
    def pixels(self) -> tuple[int, int] | None:
        """Width and height of a picture, where its header tells."""
        return (self.width, self.height) if self.width and self.height else None

    @property
    def name(self) -> str:
        """The file's name, without its folders."""
        return Path(self.path).name

    @property
    def suffix(self) -> str:
        """What follows the name's last dot, in small letters: `png`."""
        return Path(self.path).suffix.lower().removeprefix(".")

    @property
    def in_words(self) -> str:
        """What stands for the file where only text can stand."""
        short = self.digest[:_SHORT_DIGEST]
        return f"[file {self.name}, {self.mime_type}, {format_bytes(self.size)}, #{short}]"

    @property
    def text(self) -> str:
        """The text of a text file, or of a PDF; FileUnusable where there is none."""
        return text_of(self)

    def extract_text(self) -> str:
        """`text`, by EDSL's name for it."""
        return self.text

    def is_image(self) -> bool:
        return self.kind is FileKind.IMAGE

    def is_video(self) -> bool:
        return self.kind is FileKind.VIDEO

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FileStore) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"FileStore({self.path!r})"

    def _key(self) -> tuple[str, str, str]:
        return self.path, self.digest, self.mime_type


def path_of(value: object) -> str:
    """A file as JSON: its path. For encoders, which call it with whatever they do not know."""
    if isinstance(value, FileStore):
        return value.path
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _checked_path(path: str | Path) -> str:
    if not isinstance(path, (str, Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ListError(f"{path!r} is no path.", fix='Give the path of a file, like FileStore("cat.png").')
    if "://" in str(path):
        raise ListError(f"{path} is an address.", fix="Download it first: files are read from this machine's disk.")
    # Absolute, since a run may go on from another directory; links are left as they are.
    absolute = str(Path(path).expanduser().absolute())
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise ListError(f"The name of {absolute!r} is not Unicode.", fix="Rename the file.") from None
    if "\0" in absolute:
        raise ListError(f"{path!r} is no path.", fix="Give the path of a file.")
    return absolute
