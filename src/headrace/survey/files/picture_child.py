"""Makes one picture smaller, as a program of its own: `python picture_child.py path digest most_bytes most_pixels out`.

It writes a JPEG file of at most so many bytes, and pixels a side, and exits with 0, or with a PictureEnd. Memory and
CPU time are limited by the operating system, and the number of pixels is looked at before anything is decoded. It
imports nothing of Headrace, so that it starts quickly.
"""

import hashlib
import sys
from enum import IntEnum
from typing import Any

MOST_PIXELS = 100_000_000
_MEMORY_BYTES = 800_000_000
_CPU_S = 60
_QUALITIES = (90, 80)
_STEP = 0.75
_MOST_STEPS = 12


class PictureEnd(IntEnum):
    NOT_INSTALLED = 71
    CHANGED = 72
    TOO_MANY_PIXELS = 73
    NOT_SMALL_ENOUGH = 74


def main(path: str, digest: str, most_bytes: int, most_pixels: int, out: str) -> int:
    _limit()
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return PictureEnd.NOT_INSTALLED
    with open(path, "rb") as file:  # noqa: PTH123
        if hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest() != digest:
            return PictureEnd.CHANGED
        file.seek(0)
        Image.MAX_IMAGE_PIXELS = None  # looked at here
        picture = Image.open(file)
        if picture.width * picture.height > MOST_PIXELS:
            return PictureEnd.TOO_MANY_PIXELS
        picture.draft("RGB", (most_pixels, most_pixels))  # a JPEG is decoded at a part of its size
        picture = _flat(ImageOps.exif_transpose(picture))
    picture.thumbnail((most_pixels, most_pixels))
    for _ in range(_MOST_STEPS):
        for quality in _QUALITIES:
            picture.save(out, "JPEG", quality=quality)
            with open(out, "rb") as made:  # noqa: PTH123
                if made.seek(0, 2) <= most_bytes:
                    return 0
        picture.thumbnail((max(1, int(picture.width * _STEP)), max(1, int(picture.height * _STEP))))
    return PictureEnd.NOT_SMALL_ENOUGH


def _flat(picture: Any) -> Any:
    """The picture in red, green and blue, on white where it is transparent."""
    from PIL import Image

    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        shown = picture.convert("RGBA")
        white = Image.new("RGB", shown.size, "white")
        white.paste(shown, mask=shown.getchannel("A"))
        return white
    return picture.convert("RGB")


def _limit() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
