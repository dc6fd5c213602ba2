"""Engines on nodes that are hosts in this process: Ray's part alone is replaced, wardens and workers are real."""

import pytest

from tests.agents.engine.waiting_engines import server, small_warden
from tests.cluster.nodes_here import NodesHere
from tests.temporary_files import no_temporary_file_left

__all__ = ["no_temporary_file_left", "server", "small_warden"]


@pytest.fixture(autouse=True)
def _local_nodes(monkeypatch):
    monkeypatch.setattr("headrace.agents.nodes.engine_nodes.RayNodes", NodesHere)
