"""``cluster status``: the answers of a TF_CONFIG's servers, without TensorFlow."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.rendezvous import VARIABLE
from estimator_bridge.cluster.server_status import Health, ask
from estimator_bridge.cluster.tasks import TaskId
from estimator_bridge.launcher.ports import free_ports
from tests.launcher.conftest import STAND_IN, wait_until


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[str]]]:
    """Starts a chief that serves and a worker that answers as a different task; there is no ps."""
    folder = tmp_path_factory.mktemp("cluster")
    chief, worker, ps = (f"127.0.0.1:{port}" for port in free_ports(3))
    made = {"chief": [chief], "worker": [worker], "ps": [ps], "evaluator": ["127.0.0.1:1"]}
    processes = []
    for job, plan in (("chief", "serve,there,stay"), ("worker", "serve:ps:3,there,stay")):
        environment = os.environ | {
            "TF_CONFIG": json.dumps({"cluster": made, "task": {"type": job, "index": 0}}),
            VARIABLE: str(folder),
            "PYTHONPATH": "src",
        }
        asked = [sys.executable, str(STAND_IN), str(folder), f"{job} 0={plan}"]
        processes.append(subprocess.Popen(asked, env=environment, cwd=Path(__file__).parents[2]))
    wait_until(lambda: len(list(folder.glob("*.there"))) == 2)
    yield made
    for process in processes:
        process.kill()
        process.wait()


def test_ready_mistaken_and_missing_servers(cluster: dict[str, list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["cluster", "status", json.dumps({"cluster": cluster}), "--format", "json", "--timeout", "100"])

    chief, worker, ps = json.loads(capsys.readouterr().out)["tasks"]
    assert code == 1
    assert 0 < chief.pop("milliseconds") < 100_000
    assert chief == {
        "task": "chief 0", "address": cluster["chief"][0], "health": "ready", "devices": ["CPU:0"], "incarnation": 7, "reason": ""
    }  # fmt: skip
    assert (worker["task"], worker["health"], worker["reason"]) == ("worker 0", "another task", "ps 3 answers here")
    assert (ps["task"], ps["health"], ps["reason"]) == ("ps 0", "missing", "no connection")


@pytest.mark.parametrize("columns", [120, 60])
def test_a_cluster_that_is_ready(
    cluster: dict[str, list[str]], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """The environment's TF_CONFIG is used. Indices may be keys, and a narrow terminal cuts nothing off."""
    there = {"cluster": {"chief": {"0": cluster["chief"][0]}}, "task": {"type": "chief", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(there))
    monkeypatch.setenv("COLUMNS", str(columns))

    code = main(["cluster", "status", "--timeout", "100"])

    rows = [line.split("│")[1:6] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert code == 0
    assert ["".join(cell.strip() for cell in column) for column in zip(*rows, strict=True)] == [
        "chief 0",
        cluster["chief"][0],
        "ready",
        "CPU:0",
        "0" * 15 + "7",
    ]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ('{"cluster": {"worker": "a:1"}}', "cluster.worker is wrong"),
        ('{"task": {"type": "chief", "index": 0}}', "contains no cluster"),
        ('{"cluster": 5}', "cluster is a int, and must be an object"),
        ('{"cluster": ["a:1"]}', "cluster is a list, and must be an object"),
        ("{", "this is not JSON"),
        ("nowhere.json", "The TF_CONFIG cannot be read."),
    ],
)
def test_a_wrong_tf_config_is_refused(given: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "status", given]) == 2
    assert said in capsys.readouterr().err


def test_a_timeout_that_is_no_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cluster", "status", "--timeout", "-5"])
    assert "expected a number of seconds, 0 or more, received '-5'" in capsys.readouterr().err


def test_a_server_that_accepts_and_never_answers_is_given_up_at_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        [answer] = ask({TaskId("ps", 0): f"127.0.0.1:{silent.getsockname()[1]}"}, timeout=1)

    assert answer.health is Health.MISSING
    assert answer.reason == "no answer within 1 s"
