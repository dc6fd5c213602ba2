"""A Ray cluster on this machine: NODES, each with two CPUs, beside a head without any.

Obeys lines on its standard input until that is closed: `add {"NAME": "value"}`, `kill NUMBER` (its raylet, by SIGKILL),
`kill head`.
Tells the address first, and then the raylet of each node.
"""

import json
import logging
import sys

from ray.cluster_utils import Cluster

from tests.trouble.programs.telling import tell

STORE_BYTES = 80_000_000  # the least that Ray takes is about 79 MB

logging.disable(logging.WARNING)
head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
cluster = Cluster(initialize_head=True, head_node_args=head)
nodes = []


def add(environment: dict[str, str]) -> None:
    node = cluster.add_node(num_cpus=2, object_store_memory=STORE_BYTES, env_vars=environment or None, wait=True)
    nodes.append(node)
    tell(node=len(nodes) - 1, id=nodes[-1].node_id, raylet=raylet_of(nodes[-1]))


def raylet_of(node) -> int:
    return node.all_processes["raylet"][0].process.pid


tell(address=cluster.address)
for _ in range(int(sys.argv[1])):
    add({})
for line in sys.stdin:
    match line.split(maxsplit=1):
        case ["add", environment]:
            add(json.loads(environment))
        case ["kill", "head\n"]:
            cluster.head_node.kill_gcs_server()
            tell(killed="head")
        case ["kill", number]:
            cluster.remove_node(nodes[int(number)], allow_graceful=False)
            tell(killed=int(number))
cluster.shutdown()
tell(ended=True)
