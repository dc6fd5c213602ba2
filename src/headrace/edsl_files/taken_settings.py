"""What EDSL 1.0.9 takes as a question's settings: some that are fine here would keep a whole file from loading there.

Does not cover: writing the survey (survey_writing).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

_LONGEST_OPTION = 9_999
_OTHER_ENDINGS = ("_comment", "_generated_tokens")  # EDSL keeps its own parts under such names


def refused_name(name: str) -> bool:
    """Whether EDSL takes no question of this name."""
    return name.endswith(_OTHER_ENDINGS)


def refused_settings(kind: str, settings: Mapping[str, Any]) -> str | None:
    """Why EDSL would refuse a question with these settings, of those that are fine here; None where it takes them."""
    options: Any = settings.get("question_options")
    if not isinstance(options, (list, tuple)):
        return None
    listed = list(cast("list[Any]", options))
    if any(isinstance(option, str) and len(option) > _LONGEST_OPTION for option in listed):
        return "an option is very long"
    if kind == "budget" and not all(isinstance(option, str) for option in listed):
        return "its options are not texts"
    if kind == "yes_no" and len(listed) != 2:
        return "it has more than two options"
    if kind == "linear_scale" and sorted(listed) != listed:
        return "its options do not ascend"
    return None


def fits_labels(labels: Any, options: Any) -> bool:
    """Whether EDSL takes these labels of a scale: the first and the last option have one, and no two are alike."""
    if not isinstance(labels, Mapping) or not isinstance(options, (list, tuple)):
        return False
    held, listed = cast("Mapping[Any, Any]", labels), cast("list[Any]", options)
    try:
        keys = [float(key) for key in held]
        ends = [float(min(listed)), float(max(listed))]
        are_options = all(int(key) == float(key) and float(key) in listed for key in held)
    except (TypeError, ValueError):
        return False
    texts = list(held.values())
    is_distinct = all(isinstance(text, str) for text in texts) and len(set(texts)) == len(texts)
    return bool(keys) and [min(keys), max(keys)] == ends and are_options and is_distinct
