"""YAML as plain data, checked before it is built. Covers: nesting, aliases, and numbers too long to be numbers.

An alias stands for a whole subtree: nine aliases of nine aliases of ... are 10^9 nodes in half a kilobyte. Each node is
counted when the parser meets it, an alias with all that it stands for, and nothing is built from a text that has too
many. Does not cover: what the data means (plan.survey_file).
"""

from __future__ import annotations

from typing import Any, cast

import yaml

_DEEPEST = 50
_MOST_NODES = 200_000
_LONGEST_NUMBER = 100  # letters; one with a million digits takes minutes to read


class _Loader(yaml.SafeLoader):
    """Plain data only. `Yes`, `No`, `on` and `off` stay texts: in a survey they are answers."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - the library's own name and type
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool" or first in "tTfF"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = self._nodes = 0
        self._held_by: dict[str, int | None] = {}  # nodes below each anchor; None while it is being read

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = cast(Any, self).peek_event()
        before, anchor = self._nodes, event.anchor
        if type(event) is yaml.AliasEvent:
            self._count(self._held_by.get(anchor, 0), event)
            return super().compose_node(parent, index)
        self._count(1, event)
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _refused(f"it is nested deeper than {_DEEPEST} levels", event)
        if anchor is not None:
            self._held_by[anchor] = None
        node = super().compose_node(parent, index)
        self._depth -= 1
        if anchor is not None:
            self._held_by[anchor] = self._nodes - before
        return node

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode and isinstance(value, str) and len(value) > _LONGEST_NUMBER:
            implicit = (False, True) if implicit[0] else implicit
        return cast(Any, super()).resolve(kind, value, implicit)

    def _count(self, nodes: int | None, event: Any) -> None:
        if nodes is None:
            raise _refused("an alias stands for something that holds the alias itself", event)
        self._nodes += nodes
        if self._nodes > _MOST_NODES:
            raise _refused(f"with its aliases written out it has more than {_MOST_NODES:,} values", event)


def read_yaml(text: str) -> Any:
    """The data in a YAML text. Raises yaml.YAMLError, and ValueError for what no value can be."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _refused(problem: str, event: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=event.start_mark)
