"""The nodes of a Ray cluster: an actor of ours on each, from the moment it joins until it is gone.

    Ray ── ray.nodes(), every two seconds ──► RayNodes ── on_joined(node) ──► whoever runs work there
                                              an actor for each (NodeHost)    node.warden: the place of a pool

Ray starts the actors, places them and notices dead ones; what they do is ours. Actors are never restarted and their
calls never repeated by Ray: it may report a failure after a call has succeeded. A node whose actor died gets another,
after a pause that doubles. One that runs other code than the controller is told and refused.

The only module that loads Ray. Does not cover: what an actor does (cluster.node_host), or work on nodes.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headrace.cluster.code_version import code_version
from headrace.cluster.node_host import NodeHost
from headrace.cluster.remote_warden import GATHER_S, RemoteWarden
from headrace.cluster.sent_files import BlockTurns
from headrace.cluster.tunnel_wire import PARTS, NodeHello
from headrace.errors import HeadraceError, MissingExtra, Spelled, spelled
from headrace.ray_option import Ray

if TYPE_CHECKING:
    from ray.actor import ActorHandle

_LOOK_EVERY_S = 2.0
_LOOK_AGAIN_S = 0.05
_HELLO_WITHIN_S = 60.0
_ANSWER_WITHIN_S = 10.0
_FIRST_NODE_WITHIN_S = 60.0
_FIRST_REST_S = 1.0
_LONGEST_REST_S = 30.0
_LEAVE_WITHIN_S = 5.0
_LONGEST_GATHER_S = 0.5
_log = logging.getLogger("headrace")

BRING_CODE = 'Install on each node what runs here, or have Ray do so: Ray(..., runtime_env={"pip": [...]}).'
FIT_MEMORY = spelled("{memory} is the budget of each node: give one that fits, or have fewer slots.", memory=None)
_START_ONE = Spelled(
    'Start one with `ray start --head`, name another (Ray("ray://head:10001")), or write Ray() to have one started.',
    command="Start one with `ray start --head`, or name another in RAY_ADDRESS (for a run also: --on host:6379).",
)


_CLIENT_PORT = (
    "An address with ray:// is the head's client port, 10001, which is open where `ray[client]` was installed there"
    " before `ray start --head`."
)
_OWN_INIT = "In a program that calls ray.init itself, give runtime_env= to that call, and leave it out of Ray(...)."


class NodeRefusal(NamedTuple):
    """Why a node takes no part, and what to do about it."""

    reason: str
    fix: str


class RayNode:
    """A node that takes part. `slots` is how many workers it has."""

    def __init__(self, id: str, actor: ActorHandle[NodeHost], hello: NodeHello, slots: int) -> None:
        self.id = id
        self.hello = hello
        self.slots = slots
        self._actor = actor
        self.warden: RemoteWarden | None = None

    @property
    def name(self) -> str:
        return f"{self.hello.host} ({self.id[:8]})"

    async def deliver(self, payload: bytes) -> None:
        await _answered(_called(self._actor.deliver, payload))

    async def collect(self) -> list[bytes]:
        return await _answered(_all_called(self._actor.collect.options(num_returns=PARTS)))

    async def end(self) -> None:
        """Have everything on the node ended, and the actor."""
        with suppress(Exception):  # whatever keeps it from that: its actor's end ends everything there
            await asyncio.wait_for(_called(self._actor.leave), _LEAVE_WITHIN_S)
        self.kill()

    def kill(self) -> None:
        _kill(self._actor)


class RayNodes:
    """`memory` is the budget of each node, as the user wrote it, and read there in the rhythm `read_every_s`;
    `environment` is for workers. `on_joined` gets each node that takes part, `on_lost` each of them that is gone, after
    its warden's pool has heard it. `on_failed` hears, once it has started, why no node will ever take part any more.
    `gather_s` is how long messages may wait for others, for each node that takes part.
    """

    def __init__(
        self,
        option: Ray,
        memory: str | int | None,
        environment: dict[str, str],
        on_joined: Callable[[RayNode], None],
        on_failed: Callable[[HeadraceError], None],
        *,
        on_lost: Callable[[RayNode, str], None] = lambda _node, _reason: None,
        read_every_s: float = 1.0,
        gather_s: float = 0.0,
    ) -> None:
        self._option = option
        self._memory = memory
        self._environment = environment
        self._on_joined = on_joined
        self._on_failed = on_failed
        self._on_lost = on_lost
        self._read_every_s = read_every_s
        self._former_wardens: dict[str, int] = {}
        self._turns = BlockTurns()
        self._gather_s = gather_s
        self._connection: _Connection | None = None
        self._nodes: dict[str, RayNode] = {}
        self._joining: dict[str, asyncio.Task[None]] = {}
        self.refused: dict[str, NodeRefusal] = {}  # by node
        self._rests: dict[str, float] = {}
        self._looking: asyncio.Task[None] | None = None

    @property
    def nodes(self) -> list[RayNode]:
        return list(self._nodes.values())

    async def connect(self) -> None:
        """Reach the cluster; raises where there is none."""
        if self._connection is None:
            self._connection = await asyncio.to_thread(_Connection, self._option)

    async def start(self, check_wanted: Callable[[], None], former_wardens: Mapping[str, int] | None = None) -> None:
        """Return when every node that was there at the start takes part, or was refused. `check_wanted` raises where
        nobody waits for that any more. `former_wardens` are those of a killed controller, by node: a node joins when
        they have ended.
        """
        await self.connect()
        self._former_wardens = dict(former_wardens or {})
        give_up_at = time.monotonic() + _FIRST_NODE_WITHIN_S
        await self._look()
        while (self._joining or not self._nodes) and time.monotonic() < give_up_at:
            check_wanted()
            await asyncio.sleep(_LOOK_AGAIN_S)
            if not self._joining and not self._nodes:
                await self._look()
        if not self._nodes:
            raise HeadraceError(
                f"No node of the Ray cluster took part within {_FIRST_NODE_WITHIN_S:g} s.",
                fix="`ray status` shows its nodes: one with CPUs is needed. Where nodes are added on demand, ask Ray"
                " for some first: request_resources, in docs/cluster.md.",
            )
        self._looking = asyncio.create_task(self._look_on())

    def refuse(self, node: RayNode, reason: str, fix: str) -> None:
        """Have nothing more to do with a node where no work can be done."""
        if self._nodes.pop(node.id, None) is not None:
            self._refuse(node.id, node.name, NodeRefusal(reason, fix))
            if node.warden is not None:
                node.warden.lose(reason)

    async def close(self) -> None:
        for task in (self._looking, *self._joining.values()):
            if task is not None:
                task.cancel()
        nodes, self._nodes = self.nodes, {}
        await asyncio.gather(*(self._end(node) for node in nodes))
        if self._connection is not None:
            await asyncio.to_thread(self._connection.close)

    async def _end(self, node: RayNode) -> None:
        if node.warden is not None:
            await node.warden.close()
        await node.end()

    async def _look_on(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                await self._look()
            except HeadraceError as error:
                self._on_failed(error)
                return
            except Exception as error:  # noqa: BLE001 - whatever Ray says while its head is away
                _log.debug("The nodes of the Ray cluster could not be listed: %s", _first_line(error))

    async def _look(self) -> None:
        assert self._connection is not None
        alive = await asyncio.to_thread(self._connection.nodes)
        for node in self.nodes:
            if node.id not in alive and node.warden is not None:
                node.warden.lose("it has left the cluster")
        for name, cpus in alive.items():
            if name not in self._nodes and name not in self._joining and name not in self.refused:
                task = self._joining[name] = asyncio.create_task(self._join(name, cpus))
                task.add_done_callback(lambda _, name=name: self._joining.pop(name, None))
        self._check_any_left()

    def _check_any_left(self) -> None:
        """Where every node was refused there is nothing to wait for."""
        if self.refused and not self._nodes and not self._joining:
            reasons = "; ".join(dict.fromkeys(refusal.reason for refusal in self.refused.values()))
            first = next(iter(self.refused.values()))
            raise HeadraceError(f"No node of the Ray cluster can take part: {reasons}.", fix=first.fix)

    async def _join(self, id: str, cpus: int) -> None:
        assert self._connection is not None
        if rest_s := self._rests.get(id):
            await asyncio.sleep(rest_s)
        try:
            actor = self._connection.actor(id)
        except Exception as error:  # noqa: BLE001 - whatever Ray says of its own options
            self._refuse(id, id[:8], NodeRefusal(f"Ray refuses to start an actor: {_first_line(error)}", _OWN_INIT))
            return
        try:
            answer = await asyncio.wait_for(_called(actor.hello, self._memory, self._read_every_s), _HELLO_WITHIN_S)
            if former := self._former_wardens.pop(id, None):
                await asyncio.wait_for(_called(actor.outlive, former), _HELLO_WITHIN_S)
        except asyncio.CancelledError:
            _kill(actor)
            raise
        except Exception as error:  # noqa: BLE001 - whatever Ray says of an actor that could not be made
            _kill(actor)
            self._not_made(id, error)
            return
        hello = msgspec.msgpack.decode(answer, type=NodeHello)
        if refusal := _refusal(hello):
            _kill(actor)
            self._refuse(id, f"{hello.host} ({id[:8]})", refusal)
            return
        node = RayNode(id, actor, hello, self._option.slots_per_node or cpus)
        node.warden = RemoteWarden(
            node,
            self._environment,
            on_lost=lambda reason: self._lost(node, reason),
            longest_gather_s=self._longest_gather_s,
            turns=self._turns,
        )
        self._nodes[id] = node
        self._on_joined(node)

    def _not_made(self, id: str, error: Exception) -> None:
        """A node that lacks a package lacks it the next time too; whatever else it was may be over by then."""
        if missing := _missing_module(error):
            self._refuse(id, id[:8], NodeRefusal(f"it has no module {missing!r}", BRING_CODE))
        else:
            _log.warning("A node of the Ray cluster (%s) gave no actor: %s", id[:8], _first_line(error))
            self._rest(id)

    def _refuse(self, id: str, name: str, refusal: NodeRefusal) -> None:
        self.refused[id] = refusal
        _log.warning("The node %s of the Ray cluster takes no part: %s.", name, refusal.reason)

    def _lost(self, node: RayNode, reason: str) -> None:
        self._on_lost(node, reason)
        if self._nodes.pop(node.id, None) is not None:
            elsewhere = "goes on elsewhere" if self._nodes else "waits for a node to join"
            _log.warning("The node %s of the Ray cluster is lost: %s. Its work %s.", node.name, reason, elsewhere)
            self._rest(node.id)
        node.kill()

    def _longest_gather_s(self) -> float:
        """The more nodes, the longer: all of them together are called about as often as one."""
        return max(GATHER_S, min(_LONGEST_GATHER_S, self._gather_s * len(self._nodes)))

    def _rest(self, id: str) -> None:
        self._rests[id] = min(_LONGEST_REST_S, self._rests.get(id, _FIRST_REST_S / 2) * 2)


class _Users:
    """Who of this process uses the connection to the cluster: the last one closes it, where we have made it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._is_ours = False
        self._address: str | None = None

    def join(self, ray: Any, option: Ray) -> bool:
        """Connect where nobody has; whether the connection is the program's own."""
        with self._lock:
            if not self._count:
                self._is_ours, self._address = not ray.is_initialized(), option.address
                if self._is_ours:
                    _connect(ray, option.address, option.runtime_env)
            elif self._is_ours and option.address != self._address:
                raise HeadraceError(
                    f"This process is connected to the Ray cluster {_where(self._address)} already, for another job or"
                    " engine, and Ray allows one cluster in a process.",
                    fix="Use the same cluster, or another process.",
                )
            self._count += 1
            return not self._is_ours

    def leave(self, ray: Any) -> None:
        with self._lock:
            self._count -= 1
            if not self._count and self._is_ours:
                ray.shutdown()


_users = _Users()


class _Connection:
    """This process's connection to the cluster: the program's own where it has one."""

    def __init__(self, option: Ray) -> None:
        # Directories that Ray is to bring are for the connection; one that the program has made takes none any more.
        self._runtime_env = option.runtime_env if _users.join(_ray(), option) else None

    def nodes(self) -> dict[str, int]:
        """The CPUs of each node that is alive and has any."""
        if not _ray().is_initialized():  # asked now, Ray would connect again, to whichever cluster is the latest
            raise HeadraceError("The program has closed its connection to the Ray cluster.", fix="Run it again.")
        found = {node["NodeID"]: int(node["Resources"].get("CPU", 0)) for node in _ray().nodes() if node["Alive"]}
        return {name: cpus for name, cpus in found.items() if cpus > 0}

    def actor(self, node: str) -> ActorHandle[NodeHost]:
        ray = _ray()
        strategy = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy(node, soft=False)
        options: dict[str, Any] = {"runtime_env": self._runtime_env} if self._runtime_env else {}
        # No CPUs are claimed: workers wait for models, and an actor that claims them all might never be placed. Without
        # events: Ray would keep up to 100 MB of them in this process, of calls that mean nothing to anybody.
        remote: Any = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, enable_task_events=False)(NodeHost)
        return remote.options(scheduling_strategy=strategy, **options).remote()

    def close(self) -> None:
        _users.leave(_ray())


def _connect(ray: Any, address: str | None, runtime_env: dict[str, Any] | None = None) -> None:
    options: dict[str, Any] = {} if address is not None else {"include_dashboard": False}
    if runtime_env:
        options["runtime_env"] = runtime_env
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster that is started here tells nobody
    if address is not None and address.startswith("ray://") and find_spec("grpc") is None:
        raise MissingExtra("ray[client]")
    try:
        _check_answers(os.environ.get("RAY_ADDRESS") if address == "auto" else address)
        ray.init(address or "local", log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = _first_line(error).rstrip(".")
        fix = _CLIENT_PORT if address is not None and address.startswith("ray://") else _START_ONE
        raise HeadraceError(f"No Ray cluster can be reached {_where(address)}: {reason}.", fix=fix) from error


def _where(address: str | None) -> str:
    if address == "auto" and (named := os.environ.get("RAY_ADDRESS")):
        return f"at {named!r}, which RAY_ADDRESS names"
    return "on this machine" if address in (None, "auto") else f"at {address!r}"


def _check_answers(address: str | None) -> None:
    """Raise where nothing listens at an address with a port: Ray itself would try on for minutes."""
    host, _, port = (address or "").removeprefix("ray://").partition("/")[0].rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_WITHIN_S).close()


def _ray() -> Any:
    # Ray prints every death of a worker on standard output, where a program's own words belong. It reads this once.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingExtra("ray") from None
    return ray


async def _called(method: Any, *arguments: Any) -> Any:
    return await _result(method.remote(*arguments))


async def _all_called(method: Any) -> list[Any]:
    """The same for a method with several results."""
    return await asyncio.gather(*map(_result, method.remote()))


def _result(reference: Any) -> asyncio.Future[Any]:
    return asyncio.wrap_future(reference.future())


async def _answered(call: Awaitable[Any]) -> Any:
    """Its result, where an error is the end of the node: Ray's own words for that speak of what is not so here."""
    try:
        return await call
    except Exception as error:
        raise ConnectionError(f"its actor or its raylet has died ({type(error).__name__})") from error


def _kill(actor: ActorHandle[NodeHost]) -> None:
    with suppress(Exception):  # it may be gone, and so may the cluster
        if _ray().is_initialized():
            _ray().kill(actor)


def _refusal(hello: NodeHello) -> NodeRefusal | None:
    if hello.problem:
        return NodeRefusal(hello.problem.rstrip("."), FIT_MEMORY)
    if hello.code != code_version():
        return NodeRefusal("it has another version of headrace than this machine", BRING_CODE)
    return None


def _missing_module(error: BaseException) -> str | None:
    """The module that a node lacks, found in what Ray says of it."""
    _, found, rest = str(error).rpartition("No module named '")
    return rest.partition("'")[0] if found else None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
