"""How wide and high a picture is, by the headers of PNG, GIF, JPEG and WebP files. Nothing is decoded.

Does not cover: other formats, whose size is not known.
"""

from __future__ import annotations

_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG's segments that tell the size
_WITHOUT_LENGTH = frozenset({0x01, *range(0xD0, 0xD9)})


def pixels(head: bytes) -> tuple[int, int]:
    """Width and height of the picture that begins with `head`; zeros where they are not told."""
    if head.startswith(b"\x89PNG") and len(head) >= 24:
        return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])
    if head.startswith(b"GIF8") and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if head.startswith(b"\xff\xd8"):
        return _of_jpeg(head)
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP" and len(head) >= 30:
        return _of_webp(head)
    return 0, 0


def _of_jpeg(head: bytes) -> tuple[int, int]:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        kind = head[at + 1]
        if kind in _FRAMES:
            return int.from_bytes(head[at + 7 : at + 9]), int.from_bytes(head[at + 5 : at + 7])
        at += 2 if kind in _WITHOUT_LENGTH else 2 + max(2, int.from_bytes(head[at + 2 : at + 4]))
    return 0, 0


def _of_webp(head: bytes) -> tuple[int, int]:
    match head[12:16]:
        case b"VP8X":
            return 1 + int.from_bytes(head[24:27], "little"), 1 + int.from_bytes(head[27:30], "little")
        case b"VP8L":
            bits = int.from_bytes(head[21:25], "little")
            return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
        case b"VP8 ":
            width, height = (int.from_bytes(head[at : at + 2], "little") & 0x3FFF for at in (26, 28))
            return width, height
        case _:
            return 0, 0
