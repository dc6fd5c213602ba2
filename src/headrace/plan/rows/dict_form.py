"""Lists as JSON values: what `to_dict` and `from_dict` of both kinds of lists share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.errors import ListError


def listed(data: Mapping[str, Any], part: str) -> Iterable[Any]:
    """The items that a dict of a list has under this name."""
    held = data.get(part) if isinstance(data, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if not isinstance(held, list):
        raise ListError(
            f"The data has no list {part!r}.",
            fix="Give what to_dict() returned or save() wrote; rows alone are a list, [{...}, {...}].",
        )
    return cast("list[Any]", held)


def edsl_marks(name: str) -> dict[str, str]:
    """The keys that EDSL needs in a dict to read it."""
    return {"edsl_version": "1.0.9", "edsl_class_name": name}


def refuse_text(values: object) -> None:
    if isinstance(values, str):
        raise ListError(f"{values!r} is one text, not a list.", fix="Put it in brackets.")
