"""A machine that vanishes with open connections: it closes none, and answers nothing any more. Network namespaces stand for machines."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.launcher.conftest import wait_until
from tests.launcher.launchers import Launcher

pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.usefixtures("in_tasks"),
]  # a warm Python would start tasks outside of the namespaces
ENDLESS = ["--steps=100000"]
LONGEST = 90.0  # seconds: 60, and what a busy machine adds


@pytest.fixture
def machines() -> Iterator[dict[str, str]]:
    """Yields two machines with a cable between them: name -> address."""
    made = {f"bridge-{os.getpid()}-{number}": f"10.213.7.{number}" for number in (1, 2)}
    if os.geteuid() or shutil.which("ip") is None:
        pytest.skip("only root makes network namespaces, with ip of iproute2")
    with contextlib.ExitStack() as stack:
        for name in made:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "delete", name)
        first, second = made
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for name, address in made.items():
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            for device in ("lo", "cable"):
                ip("-n", name, "link", "set", device, "up")
        yield made


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def vanish(machine: str, launcher: Launcher) -> None:
    """Cuts the cable of a machine first, so that no other one sees its connections end, and then ends all its processes."""
    ip("-n", machine, "link", "set", "cable", "down")
    own = psutil.Process(launcher.process.pid)
    for one in [own, *own.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.mark.parametrize(("strategy", "jobs"), [("mirrored", ["chief"]), ("async", ["chief", "ps"])])
def test_the_run_of_the_modern_path_ends(tmp_path: Path, machines: dict[str, str], strategy: str, jobs: list[str]) -> None:
    (here, address), (there, other) = machines.items()
    hosts = ",".join([f"{address}:2001", f"{other}:2001", *[f"{address}:2002"] * ("ps" in jobs)])
    counts = ["--worker", "1", *["--ps", "1"] * ("ps" in jobs)]
    options = ["--path", "modern", "--hosts", hosts, *counts, "--rendezvous", str(tmp_path / "rendezvous"), "--trusted-network"]
    with contextlib.ExitStack() as stack:
        started = {
            job: Launcher(tmp_path, [*options, "--task", f"{job}:0"], [f"--strategy={strategy}", *ENDLESS], machine)
            for job, machine in [*((job, here) for job in jobs), ("worker", there)]
        }
        for one in started.values():
            stack.callback(one.close)
        wait_until(lambda: started["chief"].saved() >= 20 and (tmp_path / "rendezvous" / "worker-0.step").exists())

        vanish(there, started["worker"])
        for job in jobs:
            started[job].finish(LONGEST)

        assert {started[job].process.returncode for job in jobs} == {1}
        assert any("worker 0" in line and other in line for line in started["chief"].lines), "names the task and its address"
        assert started["chief"].saved() >= 20
