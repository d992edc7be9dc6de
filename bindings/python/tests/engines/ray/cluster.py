"""A Ray cluster on this machine."""

from __future__ import annotations

import os

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}

import ray  # noqa: E402


def start(workers: int) -> None:
    """Starts Ray with this many workers, each one process."""
    ray.init(
        num_cpus=workers,
        include_dashboard=False,
        object_store_memory=200 * 2**20,
        logging_level="ERROR",
        log_to_driver=False,
    )
    ray.data.DataContext.get_current().enable_progress_bars = False
