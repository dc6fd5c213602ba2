"""What a file is: its media type, by its first bytes where they tell, else by its name; and the kind of that type.

Does not cover: which service takes which kind (survey.files.taken).
"""

from __future__ import annotations

import mimetypes
import re
from enum import Enum

from headrace.errors import ListError

HEAD_BYTES = 1024
MEDIA_TYPE = r"^[a-z]+/[a-z0-9.+-]+$"
UNKNOWN = "application/octet-stream"
PDF = "application/pdf"
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
_IN_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_IN_FTYP = {b"heic": "image/heic", b"heix": "image/heic", b"mif1": "image/heic", b"avif": "image/avif"}
_MP3_FRAMES = (b"\xff\xfb", b"\xff\xf3", b"\xff\xf2")
_OF_TEXT = frozenset({"application/json", "application/xml", "application/x-yaml", "application/javascript"})
_TEXT_SUFFIXES = {".md": "text/markdown", ".jsonl": "application/json", ".yaml": "text/yaml", ".yml": "text/yaml"}


class FileKind(Enum):
    """What a file is to a model."""

    IMAGE = "picture"
    PDF = "PDF"
    AUDIO = "sound file"
    VIDEO = "video"
    TEXT = "text file"
    OTHER = "file of this type"


def kind_of_type(mime_type: str) -> FileKind:
    """The kind of a media type."""
    family = mime_type.partition("/")[0]
    if mime_type == PDF:
        return FileKind.PDF
    if family == "text" or mime_type in _OF_TEXT:
        return FileKind.TEXT
    return {"image": FileKind.IMAGE, "audio": FileKind.AUDIO, "video": FileKind.VIDEO}.get(family, FileKind.OTHER)


def media_type(path: str, head: bytes, given: str | None) -> str:
    """The media type of a file that begins with `head`; ListError for a picture, PDF or recording that is none."""
    if given is not None and not re.search(MEDIA_TYPE, given):
        raise ListError(f"mime_type={given!r} is no media type.", fix='Write one like "image/png", or leave it out.')
    seen = _by_head(head)
    named = given or _by_name(path)
    if seen is not None:
        return seen if kind_of_type(seen) is kind_of_type(named) or given is None else _refuse(path, head, named)
    if kind_of_type(named) in (FileKind.IMAGE, FileKind.PDF) and named != "image/svg+xml":
        return _refuse(path, head, named)
    if given is None and kind_of_type(named) is FileKind.OTHER and _is_text(head):
        return "text/plain"
    return named


def _by_head(head: bytes) -> str | None:
    for beginning, found in _BEGINNINGS:
        if head.startswith(beginning):
            return found
    if head[:4] == b"RIFF":
        return _IN_RIFF.get(head[8:12])
    if head[4:8] == b"ftyp":
        return _IN_FTYP.get(head[8:12], "video/mp4")
    if b"%PDF-" in head:  # readers take it anywhere in the first 1,024 bytes
        return PDF
    return "audio/mpeg" if head.startswith(_MP3_FRAMES) else None


def _by_name(path: str) -> str:
    suffix = "." + path.rpartition(".")[2].lower()
    return _TEXT_SUFFIXES.get(suffix) or mimetypes.guess_type(f"x{suffix}")[0] or UNKNOWN


def _is_text(head: bytes) -> bool:
    try:
        head[: len(head) - 3 if len(head) == HEAD_BYTES else None].decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def _refuse(path: str, head: bytes, named: str) -> str:
    kind = kind_of_type(named).value
    raise ListError(
        f"{path} is no {kind}: it begins with {head[:12]!r}, which no file of type {named} does.",
        fix="Check what is in it; an error page saved under a picture's name looks like this.",
    )
