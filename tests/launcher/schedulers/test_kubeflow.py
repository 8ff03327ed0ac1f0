"""A TFJob follows its published schema, and its pods run commands that launch accepts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from estimator_bridge.cli.main import build_parser, main
from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.launcher.layout import given_layout
from estimator_bridge.runtime.json_positions import read_object

# Of the CustomResourceDefinition of kubeflow.org/v1 TFJob (training operator 1.9): field -> required, and what it is; {} of any name.
# What the operator adds to the schema: the container's name, the port's name and number, and the kinds of replicas.
CONTAINER = {
    "name": (True, re.compile("tensorflow")),
    "image": (False, str),
    "command": (False, [str]),
    "ports": (False, [{"name": (False, re.compile("tfjob-port")), "containerPort": (True, int)}]),
}
REPLICA = {
    "replicas": (False, int),
    "restartPolicy": (False, re.compile("Always|OnFailure|Never|ExitCode")),
    "template": (False, {"spec": (False, {"containers": (True, [CONTAINER])})}),
}
TFJOB = {
    "apiVersion": (True, re.compile("kubeflow.org/v1")),
    "kind": (True, re.compile("TFJob")),
    "metadata": (True, {"name": (True, re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?"))}),
    "spec": (
        True,
        {
            "runPolicy": (False, {"cleanPodPolicy": (False, re.compile("Running|All|None"))}),
            "tfReplicaSpecs": (True, dict.fromkeys(("PS", "Worker", "Chief", "Evaluator"), (False, REPLICA))),
        },
    ),
}
LAUNCH = ["launch", "--engine", "kubeflow", "--image", "registry.example/job:1", "--trusted-network"]


def check(value: Any, schema: Any, where: str = "") -> None:
    if isinstance(schema, dict):
        assert isinstance(value, dict), where
        assert value.keys() <= schema.keys(), where
        assert {name for name, (required, _) in schema.items() if required} <= value.keys(), where
        for name, each in value.items():
            check(each, schema[name][1], f"{where}.{name}")
    elif isinstance(schema, list):
        assert isinstance(value, list), where
        for each in value:
            check(each, schema[0], f"{where}[]")
    elif isinstance(schema, re.Pattern):
        assert schema.fullmatch(value), where
    else:
        assert type(value) is schema, where


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main([*LAUNCH, *arguments]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("script", ["train.py", "jobs/Train_Model.v2.py", "a" * 80 + ".py", "_.py", "02_train.py"])
def test_it_fits_the_schema(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = printed(capsys, "--worker", "2", "--ps", "1", "--evaluator", "1", script, "--steps=3")

    check(made, TFJOB)
    replicas = made["spec"]["tfReplicaSpecs"]
    assert {kind: spec["replicas"] for kind, spec in replicas.items()} == {"Chief": 1, "Worker": 2, "PS": 1, "Evaluator": 1}
    [command] = {tuple(spec["template"]["spec"]["containers"][0]["command"]) for spec in replicas.values()}
    assert command[:4] == ("python", "-m", "estimator_bridge", "launch")
    assert command[-2:] == (script, "--steps=3")
    assert [spec["template"]["spec"]["containers"][0]["ports"] for spec in replicas.values()] == [
        [{"name": "tfjob-port", "containerPort": 2222}]
    ] * 4


def test_tasks_that_outlive_the_chief_end_by_themselves(capsys: pytest.CaptureFixture[str]) -> None:
    """A job counts as done when its chief is, and the operator deletes pods that still run: the evaluator, before the last checkpoint."""
    made = printed(capsys, "--worker", "1", "--evaluator", "1", "train.py")
    assert made["spec"]["runPolicy"]["cleanPodPolicy"] == "None"


def expanded(argument: str, variables: dict[str, str]) -> str:
    """Expands an argument as Kubernetes documents it for ``command``: $$ is $; $(NAME) is a variable's value, or itself without one."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))",
        lambda found: "$" if found[1] == "$" else variables.get(found[2], found[0]),
        argument,
    )


def test_arguments_reach_the_script_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--tag=$(HOSTNAME)", "--pattern=a$$b$", "--price=$$(HOSTNAME)$1", "--shell=${HOME}"]
    assert expanded("$(HOSTNAME) $$(HOSTNAME) $(NO)", {"HOSTNAME": "pod-1"}) == "pod-1 $(HOSTNAME) $(NO)"

    [spec] = printed(capsys, "train.py", *given)["spec"]["tfReplicaSpecs"].values()

    command = spec["template"]["spec"]["containers"][0]["command"]
    assert [expanded(argument, {"HOSTNAME": "pod-1"}) for argument in command][-5:] == ["train.py", *given]


def test_a_job_without_tasks_has_no_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    made = printed(capsys, "--chief", "0", "--worker", "2", "train.py")
    assert list(made["spec"]["tfReplicaSpecs"]) == ["Worker"]


@pytest.mark.parametrize(("job", "index"), [("chief", 0), ("worker", 1), ("ps", 0), ("evaluator", 0)])
def test_a_pod_launches_its_one_task(job: str, index: int) -> None:
    """The operator writes names of services into TF_CONFIG, and a field that TensorFlow does not know."""
    jobs = {"chief": 1, "worker": 2, "ps": 1}
    cluster = {each: [f"train-{each}-{i}.default.svc:2222" for i in range(number)] for each, number in jobs.items()}
    given = {"cluster": cluster, "task": {"type": job, "index": index}, "environment": "cloud"}

    layout = given_layout(TaskContext(read_object(json.dumps(given), "TF_CONFIG")))

    assert [str(task) for task in layout.tf_configs] == [f"{job} {index}"]


def test_the_manifest_contains_nothing_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKEN", "only-for-me")
    assert "only-for-me" not in json.dumps(printed(capsys, "train.py"))


@pytest.mark.parametrize(("given", "seconds"), [([], 300), (["--return-timeout", "90"], 90)])
def test_a_pod_gets_time_for_its_restart(given: list[str], seconds: float, capsys: pytest.CaptureFixture[str]) -> None:
    [spec] = printed(capsys, *given, "train.py")["spec"]["tfReplicaSpecs"].values()
    command = spec["template"]["spec"]["containers"][0]["command"]
    assert build_parser().parse_args(command[3:]).return_timeout == seconds


def test_options_are_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    given = [
        "--path",
        "modern",
        "--max-restarts",
        "0",
        "--grace",
        "0",
        "--rendezvous",
        "/shared/1",
        "--audit",
        "--audit-allow",
        "diverged",
    ]
    [spec] = printed(capsys, *given, "--format", "json", "-m", "trainer.task")["spec"]["tfReplicaSpecs"].values()
    command = " ".join(spec["template"]["spec"]["containers"][0]["command"])
    for words in (
        "--path modern",
        "--format json",
        "--max-restarts 0",
        "--grace 0",
        "--rendezvous /shared/1",
        "--audit ",
        "--audit-allow diverged",
        "--trusted-network",
    ):
        assert words in command
    assert command.endswith("-m trainer.task")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "kubeflow", "--image", "a", "train.py"], "Servers of this cluster can be reached"),
        (["--engine", "slurm", "train.py"], "Servers of this cluster can be reached"),
        (["--engine", "kubeflow", "--trusted-network", "train.py"], "--image is required with --engine kubeflow"),
        (["--engine", "slurm", "--image", "a", "--trusted-network", "train.py"], "--image is required with --engine kubeflow"),
        (["--engine", "slurm", "--trusted-network", "--chief", "0", "train.py"], "No task would train"),
        (["--engine", "slurm", "--trusted-network", "--hosts", "a:1", "train.py"], "--engine slurm and --hosts exclude"),
        (["--engine", "slurm", "--trusted-network", "--audit", "train.py"], "Workers on several machines"),
        (["--engine", "slurm", "--trusted-network", "--audit-every", "3", "train.py"], "--audit-every works only with --audit"),
        (["--image", "a", "train.py"], "--image is required with --engine kubeflow"),
    ],
)
def test_options_that_do_not_go_with_the_engine_are_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["launch", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"estimator-bridge: {said}")
