"""The nodes of a cluster as the page and `top` show them, for runs and for engines."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from headrace.cluster.node_states import NodeState


class NodeFigures(msgspec.Struct, frozen=True):
    """A node of a cluster: what is in flight there, its memory against its budget, and all that in words."""

    name: str
    slots: int
    in_flight: int
    memory_bytes: int
    budget_bytes: int
    now: str


def node_figures(nodes: Iterable[NodeState]) -> tuple[NodeFigures, ...]:
    return tuple(
        NodeFigures(each.name, each.slots, each.in_flight, each.used_bytes, each.budget_bytes, each.in_words())
        for each in nodes
    )
