"""How large a file may be for each service, as it is sent: in base64. Covers: data only, as services state it.

Limits change: the model's parameter `max_file_bytes` is another one, for the file as it lies on disk. What is not
listed has no limit here; the service says so itself. Does not cover: making pictures smaller
(survey.files.smaller_pictures).
"""

from __future__ import annotations

import msgspec

from headrace.survey.files.file_store import FileStore
from headrace.survey.files.file_types import FileKind
from headrace.units import format_bytes

_PICTURE_BYTES = {
    "anthropic": 5 << 20, "fireworks": 10_000_000, "google": 20_000_000, "groq": 4 << 20, "mistral": 10 << 20,
    "openai": 50_000_000, "xai": 20 << 20,
}  # fmt: skip
_OTHER_BYTES = {"anthropic": 32_000_000, "google": 20_000_000, "openai": 50_000_000, "mistral": 50 << 20}
_MOST_PIXELS_A_SIDE = {"anthropic": 8_000}
_ANY_BYTES = 1 << 62


class SizeLimit(msgspec.Struct, frozen=True):
    """The limits of a service; `own_bytes` is what the model's `max_file_bytes` says."""

    service: str
    own_bytes: int | None = None

    @property
    def most_pixels(self) -> int | None:
        """The most pixels a side, where the service has a limit."""
        return _MOST_PIXELS_A_SIDE.get(self.service)

    def most_bytes(self, file: FileStore) -> int:
        """The largest such file on disk that the service takes."""
        if self.own_bytes is not None:
            return self.own_bytes
        sent_bytes = (_PICTURE_BYTES if file.kind is FileKind.IMAGE else _OTHER_BYTES).get(self.service)
        return _ANY_BYTES if sent_bytes is None else sent_bytes // 4 * 3

    def why_too_large(self, file: FileStore) -> str | None:
        """Why the service would refuse the file; None where it would not."""
        most_bytes = self.most_bytes(file)
        if file.size > most_bytes:
            found = f"it has {format_bytes(file.size)}, and {self.service} takes {format_bytes(most_bytes)} at most"
        elif file.is_image() and self.most_pixels is not None and max(file.width, file.height) > self.most_pixels:
            found = (
                f"it is {file.width:,} x {file.height:,} pixels, and {self.service} takes {self.most_pixels:,} a side"
            )
        else:
            return None
        advice = 'FileStore(path, too_large="resize") sends a smaller copy' if file.is_image() else "send a part of it"
        return f"{found}; {advice}, and max_file_bytes= of the model is another limit"
