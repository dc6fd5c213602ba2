"""`NodeState`: a node of a cluster as people see it: in `headrace status` and `top`, and on a run's page.

Does not cover: nodes themselves (cluster.ray_nodes).
"""

from __future__ import annotations

import msgspec

from headrace.display import counted
from headrace.units import format_bytes, format_short_duration


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """`in_flight` interviews are in its `slots`. `used_bytes` is what everything of ours uses on the node, by its last
    word, which came `silent_s` ago.
    """

    name: str
    slots: int
    in_flight: int
    used_bytes: int
    budget_bytes: int
    silent_s: float

    def in_words(self) -> str:
        memory = f"{format_bytes(self.used_bytes)} of {format_bytes(self.budget_bytes)}"
        work = f"{self.in_flight:,} in flight in {counted(self.slots, 'slot')}"
        return f"node {self.name}: {work}, memory {memory}, last word {format_short_duration(self.silent_s)} ago"
