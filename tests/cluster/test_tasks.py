"""TF_CONFIG: one function reads it, and a process parses it once."""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from estimator_bridge.cluster.rendezvous import VARIABLE, Rendezvous
from estimator_bridge.cluster.tasks import TaskContext, TaskId
from estimator_bridge.compat.config.cluster import tf_config
from estimator_bridge.errors import BridgeError
from estimator_bridge.runtime.json_positions import read_object

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/estimator_bridge", "legacy", "modern", "compat")
ADDRESSES = {"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"], "evaluator": ["127.0.0.1:3"]}


def _reads(tree: ast.Module) -> Iterator[str]:
    """Yields the functions that read TF_CONFIG by an index, ``get``, ``pop`` or ``getenv``."""
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in ast.walk(function):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                key: ast.AST = node.slice
            elif isinstance(node, ast.Call) and node.args and ast.unparse(node.func).endswith(("get", "pop", "getenv")):
                key = node.args[0]
            else:
                continue
            if isinstance(key, ast.Constant) and key.value == "TF_CONFIG":
                yield function.name


def test_one_function_reads_the_variable() -> None:
    files = itertools.chain.from_iterable((ROOT / folder).rglob("*.py") for folder in FOLDERS)
    found = [
        (file.relative_to(ROOT).as_posix(), name)
        for file in files
        if not any(part.is_symlink() for part in (file, *file.parents))
        for name in _reads(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == [("compat/config/cluster/tf_config.py", "read_environment")]


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Returns the texts that were parsed as TF_CONFIG."""
    texts: list[str] = []

    def count(text: str, *arguments: Any) -> Any:
        texts.append(text)
        return read_object(text, *arguments)

    monkeypatch.setattr(tf_config, "read_object", count)
    tf_config._parse.cache_clear()
    yield texts
    tf_config._parse.cache_clear()


def test_a_launcher_parses_it_once(parsed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"cluster": ADDRESSES | {"chief": ["host.example:1"]}, "task": {"type": "chief", "index": 0}})
    monkeypatch.setenv("TF_CONFIG", text)
    audit = ["--audit", "--rendezvous", str(tmp_path)]

    assert main(["launch", "--log-dir", str(tmp_path), *audit, __file__]) == 2  # because of the network

    assert parsed == [text]


def test_a_task_parses_it_once(parsed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"cluster": ADDRESSES, "task": {"type": "worker", "index": 0}})
    monkeypatch.setenv("TF_CONFIG", text)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    rendezvous = Rendezvous.of_this_process()
    assert rendezvous is not None

    rendezvous.report_version("2.21.0")
    rendezvous.report_final("a reason")

    assert rendezvous.version(TaskId("worker", 0)) == "2.21.0"
    assert rendezvous.final_reason(TaskId("worker", 0)) == "a reason"
    assert parsed == [text]


def test_a_new_value_is_parsed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A script may set the variable before it makes its RunConfig."""
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert TaskContext.of_this_process() is None
    for job in ("chief", "worker"):
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": ADDRESSES, "task": {"type": job, "index": 0}}))
        context = TaskContext.of_this_process()
        assert context is not None
        assert context.task == TaskId(job, 0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"task": {"type": "chief", "index": 0}}, "contains no cluster"),
        ({"cluster": ADDRESSES}, "task"),
        ({"cluster": ADDRESSES, "task": {"type": "worker", "index": 1}}, "task.index is wrong"),
        ({"cluster": ADDRESSES, "task": {"type": "worker"}}, "task.index is wrong"),
    ],
)
def test_servers_of_a_wrong_tf_config(document: dict[str, Any], message: str) -> None:
    context = TaskContext(read_object(json.dumps(document), "job.json"))
    with pytest.raises(BridgeError, match=message):
        context.servers(task_needed=True)


def test_servers_without_a_task() -> None:
    """``cluster status`` asks the servers of a TF_CONFIG that names no task; an evaluator is not one of them."""
    context = TaskContext(read_object(json.dumps({"cluster": ADDRESSES}), "job.json"))
    assert context.servers() == {TaskId("chief", 0): "127.0.0.1:1", TaskId("worker", 0): "127.0.0.1:2"}
    assert context.task is None
