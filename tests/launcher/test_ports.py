"""Ports for servers."""

from __future__ import annotations

import random

from estimator_bridge.launcher.ports import free_ports


def test_processes_with_the_same_seed_get_different_ports() -> None:
    state = random.getstate()
    found = []
    for _ in range(2):
        random.seed(0)
        found.append(free_ports(5))
    random.setstate(state)
    assert found[0] != found[1]
