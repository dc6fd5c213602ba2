"""About how many tokens a file in a prompt takes, by the rules that services state; for estimates and rate limits.

    Anthropic   width x height / 750, once the picture is scaled to 1,568 pixels a side; at most 1,600
    Google      258 for each square of 768 pixels, and for a picture of up to 384 pixels a side
    OpenAI      scaled into 2,048 pixels and to 768 on the shorter side; 85, and 170 for each square of 512 pixels
                (gpt-4o-mini: 2,833 and 5,667; gpt-5: 70 and 140); of the small models since gpt-4.1, patches of 32
                pixels, at most 1,536, by a factor
    others      as OpenAI

A picture whose size is not known counts as one of 1,024 x 1,024. A PDF counts as 2,000 for every 50 KB begun, a
recording as 10 a second at 128 kbit/s: both are rough, and a service's own count is what is paid.
"""

from __future__ import annotations

from math import ceil

from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import FileKind

_UNKNOWN_PIXELS = (1024, 1024)
_BY_PATCHES = {
    "gpt-4.1-mini": 1.62, "gpt-4.1-nano": 2.46, "gpt-5-mini": 1.62, "gpt-5-nano": 2.46, "o4-mini": 1.72,
}  # fmt: skip
_BY_TILES = {"gpt-4o-mini": (2833, 5667), "gpt-5": (70, 140), "o1": (75, 150), "o3": (75, 150)}
_USUAL_TILES = (85, 170)
_PDF_BYTES, _PDF_TOKENS = 50_000, 2_000
_SOUND_BYTES_PER_S, _SOUND_TOKENS_PER_S = 16_000, 10


def file_tokens(service: str, model: str, file: FileStore) -> int:
    """About how many input tokens this model of this service counts for the file."""
    match file.kind:
        case FileKind.IMAGE:
            return _picture(service, model, *(file.pixels or _UNKNOWN_PIXELS))
        case FileKind.PDF:
            return ceil(file.size / _PDF_BYTES) * _PDF_TOKENS
        case FileKind.AUDIO | FileKind.VIDEO:
            return ceil(file.size / _SOUND_BYTES_PER_S) * _SOUND_TOKENS_PER_S
        case _:
            return 0  # a text stands in the prompt


def _picture(service: str, model: str, width: int, height: int) -> int:
    if service == "anthropic":
        factor = min(1.0, 1568 / max(width, height))
        return min(1_600, ceil(width * factor * height * factor / 750))
    if service == "google":
        return 258 * (1 if max(width, height) <= 384 else ceil(width / 768) * ceil(height / 768))
    for name, per_patch in _BY_PATCHES.items():
        if model.startswith(name):
            return ceil(min(1536, ceil(width / 32) * ceil(height / 32)) * per_patch)
    base, each = next((rule for name, rule in _BY_TILES.items() if model.startswith(name)), _USUAL_TILES)
    return base + each * _tiles(width, height)


def _tiles(width: int, height: int) -> int:
    into = min(1.0, 2048 / max(width, height))
    shorter = min(1.0, 768 / (min(width, height) * into))
    return ceil(width * into * shorter / 512) * ceil(height * into * shorter / 512)
