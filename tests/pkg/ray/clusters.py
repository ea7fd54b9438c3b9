"""Ray clusters of two machines with a core each, which are processes of this one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import ray
from ray.cluster_utils import Cluster

OBJECT_STORE_BYTES = 80 << 20


@contextlib.contextmanager
def two_nodes(folder: Any) -> Iterator[Any]:
    """A cluster; `second` is the node that may be killed. folder: home of its processes, where Ray keeps a token."""
    home = os.environ.get("HOME", "")
    os.environ["HOME"] = str(folder)
    try:
        head = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.second = cluster.add_node(num_cpus=1, object_store_memory=OBJECT_STORE_BYTES)
        join(cluster)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ["HOME"] = home


def join(cluster: Any) -> None:
    ray.init(address=cluster.address, log_to_driver=False)
