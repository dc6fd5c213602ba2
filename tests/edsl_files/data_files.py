"""The data files that the real EDSL 1.0.9 wrote (benchmarks/children/edsl_study.py makes them again)."""

import gzip
import json
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headrace.errors import NotCarriedOver

DATA = Path(__file__).parent / "data"


def held_in(name: str) -> dict[str, Any]:
    """The JSON that a data file holds."""
    return json.loads(gzip.decompress((DATA / name).read_bytes()))


@contextmanager
def noted() -> Generator[list[str]]:
    """Gathers what a block did not carry over."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield notes
    notes += [note for each in caught if isinstance(each.message, NotCarriedOver) for note in each.message.notes]
