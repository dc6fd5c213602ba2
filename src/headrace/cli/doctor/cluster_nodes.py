"""What `headrace doctor --ray` finds: the nodes of the cluster, and which of them can take part.

Does not cover: this machine (machine), what is installed on it (installed).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from headrace.cli.doctor.diagnosis import Diagnosis, Health
from headrace.cluster.ray_nodes import RayNode, RayNodes
from headrace.display import counted
from headrace.errors import HeadraceError, at_command
from headrace.ray_option import Ray
from headrace.units import format_bytes


def nodes() -> Iterator[Diagnosis]:
    """One finding for each node of the cluster that RAY_ADDRESS or this machine has."""
    try:
        yield from asyncio.run(_nodes())
    except HeadraceError as error:
        fix = error.at_command.removeprefix(error.message).strip()
        yield Diagnosis(name="cluster", state=Health.BROKEN, found=error.message, fix=fix)


async def _nodes() -> list[Diagnosis]:
    cluster = RayNodes(Ray("auto"), None, {}, on_joined=lambda node: None, on_failed=lambda error: None)
    try:
        await cluster.start(check_wanted=lambda: None)
        refused = [
            Diagnosis(
                name=name[:8], state=Health.CARE, found=f"takes no part: {refusal.reason}", fix=at_command(refusal.fix)
            )
            for name, refusal in cluster.refused.items()
        ]
        return [*map(_taking_part, cluster.nodes), *refused]
    finally:
        await cluster.close()


def _taking_part(node: RayNode) -> Diagnosis:
    budget, used = format_bytes(node.hello.budget_bytes), format_bytes(node.hello.used_bytes)
    slots = counted(node.slots, "slot")
    found = f"takes part: {slots}, a budget of {budget} by default, {used} of it in use before work starts"
    return Diagnosis(name=node.name, state=Health.OK, found=found)
