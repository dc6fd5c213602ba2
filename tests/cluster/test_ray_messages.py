"""What a user is told where no cluster or no node can be had, and what to do next. Without Ray."""

from typing import Any

import pytest

from headrace import HeadraceError, Ray
from headrace.cluster import ray_nodes
from headrace.cluster.ray_nodes import BRING_CODE, FIT_MEMORY, NodeRefusal, RayNodes, _connect, _refusal
from headrace.cluster.tunnel_wire import NodeHello
from headrace.errors import MissingExtra


class NoRay:
    def init(self, address: str, **options: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.\nDetails follow.")


def nodes_of() -> RayNodes:
    return RayNodes(Ray("auto"), None, {}, lambda node: None, lambda error: None)


@pytest.mark.parametrize(
    ("address", "variable", "told"),
    [
        ("auto", None, "No Ray cluster can be reached on this machine: Could not find any running Ray instance."),
        ("auto", "127.0.0.1:1", "at '127.0.0.1:1', which RAY_ADDRESS names: [Errno 111] Connection refused."),
        ("127.0.0.1:1", None, "at '127.0.0.1:1': [Errno 111] Connection refused."),
        ("127.0.0.1:1", "127.0.0.1:2", "at '127.0.0.1:1': [Errno 111] Connection refused."),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_named_at_once(
    monkeypatch: pytest.MonkeyPatch, address: str, variable: str | None, told: str
):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    if variable is not None:
        monkeypatch.setenv("RAY_ADDRESS", variable)
    with pytest.raises(HeadraceError) as refused:
        _connect(NoRay(), address)
    assert refused.value.message.endswith(told)
    assert "in RAY_ADDRESS" in refused.value.at_command
    assert 'Ray("ray://head:10001")' in refused.value.fix


def test_an_address_elsewhere_says_which_package_it_needs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ray_nodes, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"ray\[client\] is not installed"):
        _connect(NoRay(), "ray://127.0.0.1:1")


def test_a_node_with_other_code_and_one_without_memory_have_advice_of_their_own():
    hello = NodeHello(pid=1, host="a", code="another", python="3.11")
    assert _refusal(hello) == NodeRefusal("it has another version of headrace than this machine", BRING_CODE)
    small = NodeHello(pid=1, host="a", code="", python="3.11", problem="The budget is too small.")
    assert _refusal(small) == NodeRefusal("The budget is too small", FIT_MEMORY)


def test_where_every_node_was_refused_the_reasons_and_the_advice_are_told():
    nodes = nodes_of()
    nodes.refused = {"a": NodeRefusal("it is too small", FIT_MEMORY), "b": NodeRefusal("it is too small", FIT_MEMORY)}
    with pytest.raises(HeadraceError, match="can take part: it is too small") as told:
        nodes._check_any_left()
    assert told.value.message.count("it is too small") == 1
    assert told.value.at_command.endswith(
        "--memory is the budget of each node: give one that fits, or have fewer slots."
    )
