"""Shards: trajectories of episodes in files that are mapped into memory; docs/reference/shard_format.md."""

from __future__ import annotations

from doorstep.rollouts.shards.reader import TrajectoryShards, open_shards
from doorstep.rollouts.shards.writer import ShardWriter

__all__ = ["ShardWriter", "TrajectoryShards", "open_shards"]
