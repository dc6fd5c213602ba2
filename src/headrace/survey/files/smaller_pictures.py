"""Makes pictures smaller that a service would not take, in processes of their own (survey.files.picture_child).

The smaller ones lie in a temporary directory, the latest of them for the next call; a process that was killed leaves
its directory, which the next one removes (survey.files.owned_folders). Does not cover: which are too large
(survey.files.size_limits).
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
from collections import OrderedDict
from pathlib import Path

from headrace.errors import FileUnusable, MissingExtra
from headrace.survey.files import picture_child
from headrace.survey.files.file_contents import FileReference, PathContent, add_source, path_with_content
from headrace.survey.files.file_store import FileStore
from headrace.survey.files.owned_folders import OwnedFolder
from headrace.survey.files.picture_child import MOST_PIXELS, PictureEnd

_FOLDER = "headrace-pictures-"
_MOST_KEPT = 64
_MOST_AT_ONCE = 2
_WITHIN_S = 120.0
_USUAL_PIXELS = 2_048  # services look at no more
_REASONS = {
    PictureEnd.CHANGED: "its content changed since it was referred to",
    PictureEnd.TOO_MANY_PIXELS: f"it has more than {MOST_PIXELS // 1_000_000} million pixels",
    PictureEnd.NOT_SMALL_ENOUGH: "it cannot be made small enough",
}


class SmallerPictures:
    """May be used from any thread. `take` waits for the picture. A source of what it has made: such a file is on this
    host, also where all others are on the controller's.
    """

    is_elsewhere = False

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._makers = threading.BoundedSemaphore(_MOST_AT_ONCE)
        self._directory: OwnedFolder | None = None
        self._number = 0
        self._kept: OrderedDict[tuple[str, int], FileStore] = OrderedDict()
        self._used: dict[tuple[str, int], int] = {}

    def take(self, file: FileStore, most_bytes: int, most_pixels: int | None) -> FileStore:
        """A smaller copy of a picture, which stays until it is given back."""
        key = file.digest, most_bytes
        with self._makers:
            with self._lock:
                self._used[key] = self._used.get(key, 0) + 1
                found = self._kept.get(key)
            if found is None:
                try:
                    found = self._made(file, most_bytes, most_pixels or _USUAL_PIXELS)
                except BaseException:
                    self.give_back(file, most_bytes)
                    raise
                with self._lock:
                    if (other := self._kept.setdefault(key, found)) is not found:  # made twice at once
                        Path(found.path).unlink(missing_ok=True)
                        found = other
        return found

    def give_back(self, file: FileStore, most_bytes: int) -> None:
        key = file.digest, most_bytes
        with self._lock:
            self._used[key] -= 1
            if not self._used[key]:
                del self._used[key]
            unused = [each for each in self._kept if each not in self._used]
            for each in unused[: max(0, len(self._kept) - _MOST_KEPT)]:
                Path(self._kept.pop(each).path).unlink(missing_ok=True)

    def open(self, file: FileReference) -> PathContent | None:
        is_ours = self._directory is not None and str(Path(file.path).parent) == self._directory.name
        return PathContent(file.path) if is_ours else None

    def _made(self, file: FileStore, most_bytes: int, most_pixels: int) -> FileStore:
        with self._lock:
            if self._directory is None:
                self._directory = OwnedFolder(_FOLDER)
                atexit.register(self._directory.cleanup)
                add_source(self)
            self._number += 1
            out = Path(self._directory.name) / f"{self._number}.jpg"
        with path_with_content(file) as path:
            command = [
                sys.executable, "-P", str(Path(picture_child.__file__)), path, file.digest,
                str(most_bytes), str(min(most_pixels, _USUAL_PIXELS)), str(out),
            ]  # fmt: skip
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WITHIN_S)  # noqa: PLW1510
            except subprocess.TimeoutExpired:
                raise FileUnusable(file.path, f"making it smaller takes longer than {_WITHIN_S:.0f} s") from None
        if done.returncode:
            raise _problem(file, done.returncode, done.stderr)
        return FileStore(out)


def _problem(file: FileStore, code: int, said: bytes) -> Exception:
    if code == PictureEnd.NOT_INSTALLED:
        return MissingExtra("pillow")
    known = _REASONS.get(PictureEnd(code)) if code in set(PictureEnd) else None
    if known is None and code < 0:
        known = "making it smaller takes more memory or time than a picture does"
    last = said.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
    return FileUnusable(file.path, known or f"it cannot be made smaller ({last})")


SMALLER = SmallerPictures()
