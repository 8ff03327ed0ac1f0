"""``estimator-bridge convert config`` from the outside: results, reports, exit codes, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from estimator_bridge.cli.main import main
from tests.running import ROOT

Run = Callable[..., tuple[int, str, str]]

GROWTH = "allow_soft_placement: true\ngpu_options { allow_growth: true }\n"
RUN_CONFIG = {
    "model_dir": "model",
    "save_checkpoints_steps": 5,
    "session_config": {"allow_soft_placement": True, "device_count": {"CPU": 2}, "intra_op_parallelism_threads": 2},
    "train_distribute": {"class": "MirroredStrategy", "devices": ["CPU:0", "CPU:1"]},
    "train_spec": {"max_steps": 12, "hooks": [{"class": "LoggingTensorHook", "every_n_iter": 5}]},
    "eval_spec": {"steps": 2, "throttle_secs": 0},
}
SCRIPT = ROOT / "tests" / "data" / "many_settings.py"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["convert", "config", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def write(folder: Path, name: str, content: str | bytes | dict[str, Any]) -> str:
    file = folder / name
    data = content if isinstance(content, bytes) else (content if isinstance(content, str) else json.dumps(content)).encode()
    file.write_bytes(data)
    return str(file)


def test_text_shows_the_table_and_the_code(run: Run, tmp_path: Path) -> None:
    code, out, _ = run(write(tmp_path, "s.pbtxt", GROWTH))
    assert code == 0
    assert "gpu_options.allow_growth" in out
    assert "exact" in out
    assert "tf.config.set_soft_device_placement(True)" in out


def test_binary_says_the_same_as_text(run: Run, tmp_path: Path) -> None:
    text = run(write(tmp_path, "s.pbtxt", GROWTH), "--format", "json")
    binary = run(write(tmp_path, "s.pb", b"2\x02 \x018\x01"), "--format", "json")
    assert text == binary
    assert json.loads(text[1])["modern"] == {"devices": {"memory_growth": True, "soft_placement": True}}


def test_what_is_lost_makes_it_1_and_allowed_0(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path, "s.pbtxt", GROWTH + "placement_period: 3")
    code, out, _ = run(source)
    assert code == 1
    assert "dropped" in out
    assert run("--allow", "placement_period", source)[0] == 0
    report = json.loads(run("--allow", "placement_*", "--format", "json", source)[1])["report"]
    assert [row["name"] for row in report if row["allowed"]] == ["session_config.placement_period"]
    assert main(["convert", "config", "--allow", "device_fn", source]) == 2


def test_toml_goes_back_to_where_it_came_from(run: Run, tmp_path: Path) -> None:
    code, out, err = run(write(tmp_path, "run.json", RUN_CONFIG), "--format", "toml")
    assert code == 0
    assert "session_config.device_count" in err
    code, back, _ = run("--back", write(tmp_path, "modern.toml", out), "--format", "json")
    legacy = json.loads(back)["legacy"]
    assert legacy["train_distribute"] == RUN_CONFIG["train_distribute"]
    assert legacy["session_config"] == RUN_CONFIG["session_config"]
    assert (legacy["save_checkpoints_steps"], legacy["train_spec"]["max_steps"], legacy["eval_spec"]["steps"]) == (5, 12, 2)
    assert code == 0


def test_json_of_modern_goes_back_too(run: Run, tmp_path: Path) -> None:
    modern = json.loads(run(write(tmp_path, "run.json", RUN_CONFIG), "--format", "json")[1])["modern"]
    printed = write(tmp_path, "printed.json", run(write(tmp_path, "run.json", RUN_CONFIG), "--format", "json")[1])
    code, out, _ = run("--back", printed, "--format", "json")
    assert (code, json.loads(out)["legacy"]["model_dir"]) == (0, "model")
    assert run(write(tmp_path, "legacy.json", out), "--format", "json")[0] == 0
    code, out, _ = run("--back", write(tmp_path, "modern.json", modern))
    assert code == 0
    assert "tf.estimator.RunConfig(" in out


def test_tf_config_of_the_environment(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    for task, line in (
        ("chief", "tf.distribute.ParameterServerStrategy(cluster_resolver=cluster_resolver)"),
        ("worker", "server.join()"),
    ):
        monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task, "index": 0}}))
        code, out, _ = run("env", "--format", "python")
        assert code == 0
        assert line in out
        compile(out, "out.py", "exec")
    code, out, _ = run("--back", "env", "--format", "json")
    assert json.loads(out)["legacy"]["TF_CONFIG"]["cluster"] == cluster


def test_a_run_config_under_the_tf_config_of_its_environment(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    source = write(tmp_path, "run.json", {"model_dir": "m", "train_distribute": "MultiWorkerMirroredStrategy"})
    code, out, _ = run("--tf-config", "env", "--format", "json", source)
    modern = json.loads(out)["modern"]
    assert code == 0
    assert modern["cluster"]["jobs"] == cluster
    assert modern["strategy"]["name"] == "MultiWorkerMirroredStrategy"


def test_a_task_that_is_not_in_the_cluster_of_its_environment(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}))
    source = write(tmp_path, "run.json", {"model_dir": "m", "TF_CONFIG": {"task": {"index": 1}}})
    code, out, err = run("--tf-config", "env", source)
    assert (code, out) == (2, "")
    assert "1 is out of range" in err


def test_a_modern_configuration_of_nothing_but_a_cluster_goes_back(run: Run, tmp_path: Path) -> None:
    tf_config = {"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 0}}
    modern = json.loads(run(write(tmp_path, "c.json", tf_config), "--format", "json")[1])["modern"]
    assert set(modern) == {"cluster"}
    code, out, _ = run("--back", "--format", "json", write(tmp_path, "modern.json", modern))
    assert (code, json.loads(out)["legacy"]) == (0, {"TF_CONFIG": tf_config})


def test_a_name_in_brackets_can_be_allowed(run: Run, tmp_path: Path) -> None:
    source = write(tmp_path, "run.json", {"train_spec": {"hooks": ["FeedFnHook"]}})
    assert [run(source)[0], run("--allow", "hooks[0].FeedFnHook", source)[0]] == [1, 0]


def test_rows_that_contradict_each_other_are_placed(run: Run, tmp_path: Path) -> None:
    text = '{"model_dir": "a",\n "TF_CONFIG": {"model_dir": "b"}}'
    code, out, err = run(write(tmp_path, "run.json", text))
    assert (code, out) == (2, "")
    assert "line 1, column 2" in err
    assert "line 2, column 16" in err


BAD: dict[str, tuple[str, str | bytes, str]] = {
    "broken text proto": ("s.pbtxt", "gpu_options {\n allow_grwth: true }", "line 2, column 2"),
    "broken binary proto": ("s.pb", b"\x38\x01\xff\x01\x02\x03\x01", "byte 2"),
    "broken JSON": ("c.json", '{"cluster": {', "line 1"),
    "no TF_CONFIG": ("c.json", '{"cluster": {"chief": ["a:1"]}, "task": {"type": "chief", "index": 1}}', "task.index is wrong"),
    "contradiction": (
        "r.json",
        '{"model_dir": "m",\n "save_checkpoints_steps": 1, "save_checkpoints_secs": 2}',
        "line 2, column 2",
    ),
    "contradiction in a proto": (
        "s.pbtxt",
        'device_count { key: "GPU" value: 0 }\ngpu_options { visible_device_list: "0" }',
        "line 2",
    ),
    "a task without its cluster": ("c.json", '{"task": {"type": "chief", "index": 0}}', "task.type is wrong"),
    "empty file": ("s.pbtxt", "", "empty"),
    "unknown key": ("r.json", '{"model_dirr": "m"}', "Did you mean model_dir?"),
    "unknown section": ("m.toml", "[thread]\nintra_op = 1", "thread is not a section"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("form", ["text", "json", "python"])
def test_bad_input_is_2_with_its_place_and_nothing_written(run: Run, tmp_path: Path, name: str, form: str) -> None:
    file, content, said = BAD[name]
    back = ["--back"] if file == "m.toml" else []
    code, out, err = run(*back, "--format", form, write(tmp_path, file, content))
    assert code == 2
    assert said in err
    assert out == ""
    assert [one.name for one in tmp_path.iterdir()] == [file]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing.json"],
        ["--back", "s.pbtxt"],
        ["modern.json"],
        ["s.pbtxt", "--from-script"],
        ["--back", "--gpus", "2", "modern.json"],
        ["--kind", "modern", "env"],
        ["--kind", "modern", "s.pb"],
        ["--from-script", "--back", "train.py"],
        ["--from-script", "--tf-config", "env", "train.py"],
    ],
)
def test_bad_use_is_2(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "s.pbtxt", GROWTH)
    write(tmp_path, "modern.json", {"threads": {"intra_op": 1}})
    (tmp_path / "s.pb").write_bytes(b"\x10\x02")  # intra_op_parallelism_threads: 2
    write(tmp_path, "train.py", "open('ran', 'w')")
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("estimator-bridge: ")
    assert not Path("ran").exists()


@pytest.mark.parametrize("fact", ["--gpus=-1", "--gpu-memory-mb=nan", "--batch-size=x"])
def test_facts_are_numbers(run: Run, tmp_path: Path, fact: str) -> None:
    with pytest.raises(SystemExit) as ended:
        run(fact, write(tmp_path, "s.pbtxt", GROWTH))
    assert ended.value.code == 2


def test_it_starts_without_tensorflow(tmp_path: Path) -> None:
    files = [write(tmp_path, "s.pbtxt", GROWTH), write(tmp_path, "r.json", RUN_CONFIG)]
    program = (
        "import sys; from estimator_bridge.cli.main import main\n"
        f"codes = [main(['convert', 'config', file, '--format', 'python']) for file in {files!r}]\n"
        "heavy = {'tensorflow', 'numpy', 'keras', 'tf_keras'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy or any(codes) else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, capture_output=True)


@pytest.mark.usefixtures("warm_python")
def test_the_python_can_be_pasted_and_trains(run: Run, tmp_path: Path) -> None:
    config = RUN_CONFIG | {"model_dir": str(tmp_path / "model")}
    code, out, _ = run(write(tmp_path, "run.json", config), "--format", "python")
    assert code == 0
    use = (ROOT / "tests" / "data" / "below_printed_settings.py").read_text()
    command = [sys.executable, "-c", out + use, str(tmp_path / "model")]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr[-2000:]


@pytest.mark.usefixtures("warm_python")
def test_back_gives_python_that_tensorflow_1_takes(run: Run, tmp_path: Path) -> None:
    modern = json.loads(run(write(tmp_path, "run.json", RUN_CONFIG), "--format", "json")[1])["modern"]
    _, out, _ = run("--back", "--format", "python", write(tmp_path, "modern.json", modern))
    use = """
assert run_config.save_checkpoints_steps == 5
assert run_config.session_config.device_count["CPU"] == 2
assert run_config.train_distribute.num_replicas_in_sync == 2
"""
    first = "from estimator_bridge import legacy; legacy.install()\n"
    answer = subprocess.run([sys.executable, "-c", first + out + use], capture_output=True, text=True, timeout=120, check=False)
    assert answer.returncode == 0, answer.stderr[-2000:]


@pytest.mark.usefixtures("warm_python")
def test_from_script_announces_and_runs_the_script_up_to_its_estimators_first_call(tmp_path: Path) -> None:
    script = write(tmp_path, "train.py", SCRIPT.read_text())
    command = [
        sys.executable,
        "-m",
        "estimator_bridge",
        "convert",
        "config",
        "--from-script",
        "--format",
        "json",
        script,
        "model",
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert f"running {script}" in answer.stderr
    found = json.loads(answer.stdout)
    assert "the script talks" not in answer.stdout
    assert found["modern"]["checkpoint"] == {"interval_steps": 7, "max_to_keep": "all", "keep_every_n_hours": 10000.0}
    assert found["modern"]["training"] == {"model_dir": "model", "max_steps": 70}
    assert found["modern"]["summaries"] == {"update_freq": 0, "speed_freq": 100}
    assert found["modern"]["strategy"]["cross_device_ops"] == "ReductionToOneDevice"
    assert {"train_spec.saving_listeners", "eval_spec.hooks"} <= {row["name"] for row in found["report"]}
    assert found["modern"]["devices"] == {"memory_growth": True}
    assert found["modern"]["callbacks"] == [{"kind": "StopAtStep", "arguments": {"last_step": 60}}]
    assert answer.returncode == 1  # serving_input_receiver_fn is code
    assert "serving_input_receiver_fn" in next(row["why"] for row in found["report"] if row["name"].startswith("exporters"))


@pytest.mark.usefixtures("warm_python")
def test_from_script_refuses_a_script_without_an_estimator(tmp_path: Path, run: Run) -> None:
    code, out, err = run("--from-script", write(tmp_path, "empty.py", "x = 1\n"))
    assert (code, out) == (2, "")
    assert "No RunConfig of" in err


def test_a_very_long_value_is_cut_in_the_table(run: Run, tmp_path: Path) -> None:
    code, out, err = run(
        write(tmp_path, "c.json", {"model_dir": "x" * 2_000_000, "save_checkpoints_steps": 5}), "--format", "python"
    )
    assert code == 0
    assert "x... (2,000,000 characters)" in err
    assert len(err) < 20_000
    assert "x" * 2_000_000 in out
