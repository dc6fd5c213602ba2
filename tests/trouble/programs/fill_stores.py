"""Another program on a Ray cluster, which fills the object store of each node and holds on to it: ADDRESS NODES."""

import logging
import sys
import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from tests.trouble.programs.telling import tell

FILLED_BYTES = 70_000_000

if __name__ == "__main__":
    address, nodes = sys.argv[1], int(sys.argv[2])
    ray.init(address, logging_level=logging.ERROR, log_to_driver=False)
    fill = ray.remote(num_cpus=0)(lambda: bytes(FILLED_BYTES))
    with_cpus = [node["NodeID"] for node in ray.nodes() if node["Resources"].get("CPU")]
    held = [
        fill.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in with_cpus[:nodes]
    ]
    ray.wait(held, num_returns=len(held), fetch_local=False)
    tell(filled=len(held))
    time.sleep(600)
