"""`Ray(...)`: the cluster that a job or an engine runs on. A description: nothing of Ray is loaded for it.

Does not cover: reaching the cluster (cluster.ray_nodes).
"""

from __future__ import annotations

from typing import Any

import msgspec

from headrace.errors import OptionError
from headrace.units import BudgetKind, parse_budget

_MOST_SLOTS = 1_000


class Ray(msgspec.Struct, frozen=True):
    """A Ray cluster: `Ray("auto")` is the one of this host, `Ray("ray://head:10001")` one elsewhere, and `Ray()` one
    that is started here for the run and ended after it. In a program that has called `ray.init`, that cluster.

    Each node has `slots_per_node` worker processes, by default as many as Ray counts CPUs on it, and none of them may
    use more than `slot_memory`. `runtime_env` is Ray's own: how the nodes get the packages that a program needs.
    """

    address: str | None = None
    slots_per_node: int | None = None
    slot_memory: str | int | None = None
    runtime_env: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.address is not None and not (isinstance(self.address, str) and self.address.strip()):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(
                f"Ray({self.address!r}) names no cluster.",
                fix='Write Ray("auto"), Ray("ray://head:10001"), or Ray() for one on this machine.',
            )
        slots = self.slots_per_node
        if slots is not None and (type(slots) is not int or not 1 <= slots <= _MOST_SLOTS):
            raise OptionError(f"slots_per_node={slots!r} must be a whole number from 1 to {_MOST_SLOTS:,}.")
        if self.slot_memory is not None and parse_budget(self.slot_memory).kind is not BudgetKind.TOTAL:
            raise OptionError(f"slot_memory={self.slot_memory!r} must be an amount.", fix='Write slot_memory="2GB".')
        if not isinstance(self.runtime_env, dict | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"runtime_env={self.runtime_env!r} must be a dict, as Ray takes it.")

    @property
    def slot_bytes(self) -> int | None:
        """The most that a worker may use, None for its part of the node's budget."""
        return None if self.slot_memory is None else int(parse_budget(self.slot_memory).amount)
