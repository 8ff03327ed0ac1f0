"""``estimator-bridge plan``, and runs under a plan: what they print, refuse and write."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.modern.parallel.estimates import PlanEstimate
from tests.cli.test_main import run_main
from tests.packaging.conftest import ROOT
from tests.running import estimator_bridge_command

SENTENCES = ROOT / "examples" / "parallel" / "train.py"
WIDE = ROOT / "examples" / "wide_deep" / "train.py"
TOWERS = ROOT / "examples" / "parallel" / "two_tower.py"
DIGITS = ROOT / "examples" / "digits" / "train.py"
pytestmark = pytest.mark.usefixtures("warm_python")
MATCHES_NOTHING = """
[mesh]
model = 2
[[place]]
match = "encoder/.*"
device = 1
"""


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that a request is refused before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("raise AssertionError('started')\n")
    (tmp_path / "plan.toml").write_text("[mesh]\nmodel = 2\n")
    return tmp_path


@pytest.mark.usefixtures("script")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--mesh", "model=2", "train.py"], "--mesh works only on the modern path."),
        (["run", "--plan", "plan.toml", "train.py"], "--plan works only on the modern path."),
        (["run", "--path", "modern", "--mesh", "elastic=2", "train.py"], "a plan has no key 'elastic' here."),
        (["launch", "--worker", "1", "--mesh", "model=2", "train.py"], "--mesh works only on the modern path."),
        (["plan", "--plan", "nowhere.toml", "train.py"], "The plan cannot be read."),
        (["plan", "--plan", "plan.toml", "--micro", "2", "train.py"], "--micro and --plan say the same twice."),
        (
            ["run", "--path", "modern", "--plan", "plan.toml", "--mesh", "model=2", "train.py"],
            "--mesh and --plan say the same twice.",
        ),
        (["plan", "nowhere.py"], "There is no such script."),
        (["plan", "--out", "plan.txt", "train.py"], "The picture of the plan cannot be written."),
        (["plan", "--out", "nowhere/plan.svg", "train.py"], "The picture of the plan cannot be written."),
        (["plan", "--speeds", "3,1", "train.py"], "The batches of a step cannot be shared between these workers."),
        (
            [
                "launch",
                "--path",
                "modern",
                "--elastic",
                "1:2",
                "--micro",
                "2",
                "--hosts",
                "127.0.0.1:1,127.0.0.1:2",
                "--worker",
                "1",
                "--evaluator",
                "1",
                "--task",
                "chief:0",
                "--rendezvous",
                "shared",
                "train.py",
            ],
            "An evaluator cannot follow an elastic training on several machines.",
        ),
        (["plan", "--rows", "8", "--step-seconds", "1", "train.py"], "An extrapolation starts from a step that was measured."),
        (["run", "--elastic", "1:2", "--micro", "2", "train.py"], "--micro works only on the modern path."),
        (["run", "--path", "modern", "--elastic", "1:2", "train.py"], "1 number of workers from 1 to 2"),
        (
            ["run", "--path", "modern", "--elastic", "1:2", "--plan", "plan.toml", "train.py"],
            "--elastic and --plan say the same",
        ),
        (
            ["launch", "--path", "modern", "--elastic", "1:4", "--micro", "4", "--worker", "2", "train.py"],
            "An elastic plan is for",
        ),
        (["launch", "--path", "modern", "--elastic", "1:4", "--micro", "4", "--ps", "1", "train.py"], "An elastic plan is for"),
        (["compare", "--mesh", "data=2,model=2", "train.py"], "The mesh is for 2 workers, and 1 trains."),
        (["compare", "--worker", "1", "--mesh", "data=3", "train.py"], "The mesh is for 3 workers, and 2 train."),
        (["compare", "--elastic", "1:2", "--micro", "2", "train.py"], "whose steps take several batches cannot be compared"),
    ],
)
def test_a_mistake_in_a_plan_is_refused_before_the_script_starts(arguments: list[str], message: str) -> None:
    """One message, and exit code 2."""
    code, out, err = run_main(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"estimator-bridge: {message}" if message[0].isupper() or message[0] == "-" else "estimator-bridge: ")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("script")
def test_a_refusal_is_printed_as_json_as_well() -> None:
    """Beside the message; the line of the script is null before the script has started."""
    code, out, err = run_main("plan", "--plan", "nowhere.toml", "--format", "json", "train.py")
    assert code == 2
    assert err.startswith("estimator-bridge: The plan cannot be read.")
    (refused,) = json.loads(out).pop("refused")
    assert json.loads(out)["can_be_carried_out"] is False
    assert refused["what"] == "The plan cannot be read."
    assert refused["received"].startswith("nowhere.toml")
    assert refused.keys() == {"what", "expected", "received", "fix", "line"}


@pytest.mark.usefixtures("script")
def test_a_picture_that_cannot_be_written_leaves_one_object_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    found = PlanEstimate(["/device:CPU:0"], 1, [], [], [], [], ["/device:CPU:0"])
    monkeypatch.setattr("estimator_bridge.cli.plan._estimated", lambda *_: found)
    Path("plan.html").mkdir()
    code, out, err = run_main("plan", "--format", "json", "--out", "plan.html", "train.py")
    assert code == 2
    assert err.startswith("estimator-bridge: The picture of the plan cannot be written.")
    assert json.loads(out)["can_be_carried_out"] is False


def test_a_refused_script_is_named_with_its_line(tmp_path: Path) -> None:
    """In JSON; no optimizer of the script keeps state."""
    (tmp_path / "plan.toml").write_text('[mesh]\ndata = 2\n[optimizer]\nstate = "sharded"\n')
    options = ["--plan", "plan.toml", "--format", "json"]
    script = ROOT / "tests" / "data" / "trains_as_cluster.py"
    ended = estimator_bridge_command("plan", *options, script, "model", 5, cwd=tmp_path)
    assert ended.code == 2
    (refused,) = json.loads(ended.out)["refused"]
    assert refused["what"].startswith("No optimizer of the script keeps state")
    assert re.fullmatch(r".*trains_as_cluster.py:\d+", refused["line"])


def test_a_plan_is_shown_without_training(tmp_path: Path) -> None:
    """Words, places and two layers of a transformer, each with two slots that its optimizer names after it."""
    flags = ["--model_dir=model", "--batch_size=64"]
    ended = estimator_bridge_command("plan", "--mesh", "model=2", "--format", "json", SENTENCES, *flags, cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    assert not list(tmp_path.iterdir())
    found = json.loads(ended.out)
    assert found["can_be_carried_out"]
    assert not found["refused"]
    held = [row["variable_bytes"] + row["slot_bytes"] for row in found["devices"]]
    assert len(held) == 2
    assert max(held) <= 0.6 * sum(held)
    (words,) = [row for row in found["variables"] if row["name"] == "embeddings/words"]
    assert (words["variable_bytes"], words["slot_bytes"]) == (500 * 64 * 4, 2 * 500 * 64 * 4)
    assert {row["source"] for row in found["crossings"]} == {"/device:CPU:0", "/device:CPU:1"}


def test_a_plan_for_workers_is_shown_by_one_process(tmp_path: Path) -> None:
    """What each of them keeps is said, since the devices of the others are not here; what several workers cannot train is refused, as by a run."""
    (tmp_path / "plan.toml").write_text('[mesh]\ndata = 2\n[optimizer]\nstate = "sharded"\n')
    options = ["--plan", "plan.toml", "--out", "plan.svg"]
    ended = estimator_bridge_command("plan", *options, TOWERS, "--model_dir=model", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    assert re.search(r"Each of 2 workers keeps about \S+ \w+ of the", ended.out)
    assert re.search(r"2 workers add up \S+ \w+ of gradients in each step", ended.out)
    refused = estimator_bridge_command("plan", *options, SENTENCES, "--model_dir=model", cwd=tmp_path)
    assert refused.code == 2
    assert "on several replicas: an optimizer from tf.train" in refused.err
    picture = ElementTree.parse(tmp_path / "plan.svg").getroot()
    words = " ".join("".join(picture.itertext()).split())
    assert "Bytes of each device" in words
    assert "person/table" in words


def test_three_axes_are_shown_on_a_page(tmp_path: Path) -> None:
    """A step of four micro-batches in two stages takes five turns, in one of which each stage waits."""
    mesh = ["--mesh", "data=2,model=2,pipeline=2", "--micro", "4", "--out", "plan.html"]
    ended = estimator_bridge_command("plan", *mesh, SENTENCES, "--model_dir=model", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    page = (tmp_path / "plan.html").read_text()
    assert all(f"CPU:{number}" in page for number in range(4))
    assert "waits 20%" in page


def test_an_elastic_plan_shows_the_batches_of_each_worker(tmp_path: Path) -> None:
    """Activations are those of a whole batch, and not of a part."""
    ended = estimator_bridge_command("plan", "--elastic", "1:3", "--micro", 4, DIGITS, "--model_dir=model", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    assert "A step takes 4 whole batches: 1 worker takes 4; 2 workers take 2, 2." in ended.out
    assert "in each step" in ended.out
    assert "micro-batch" not in ended.out


def test_a_pattern_that_matches_nothing_ends_a_run_before_it_trains(tmp_path: Path) -> None:
    """No checkpoint is written."""
    (tmp_path / "plan.toml").write_text(MATCHES_NOTHING)
    flags = ["--model_dir=model", "--train_steps=2"]
    ended = estimator_bridge_command("run", "--path", "modern", "--plan", "plan.toml", SENTENCES, *flags, cwd=tmp_path)
    assert ended.code == 2
    assert "estimator-bridge: The plan's pattern 'encoder/.*' matches no variable." in ended.err
    assert "Traceback" not in ended.err
    assert not list(tmp_path.glob("model/model.ckpt*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "plan"),
    [
        (SENTENCES, ["--mesh", "model=2"]),
        (DIGITS, ["--mesh", "model=2"]),
        (TOWERS, ["--plan", TOWERS.with_suffix(".toml")]),
    ],
    ids=["sentences", "digits", "two towers"],
)
def test_an_example_under_a_mesh_leaves_the_same_checkpoint(tmp_path: Path, example: Path, plan: list[object]) -> None:
    """Bit by bit, and in processes of their own."""
    checkpoints = []
    empty: list[object] = []
    for name, options in (("one", empty), ("placed", plan)):
        flags = [f"--model_dir={tmp_path / name}", "--train_steps=20"]
        ended = estimator_bridge_command("run", "--path", "modern", *options, example, *flags, cwd=tmp_path)
        assert ended.code == 0, ended.err[-3000:]
        reader = tf.train.load_checkpoint(str(tmp_path / name / "model.ckpt-20"))
        checkpoints.append({key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()})
    one, placed = checkpoints
    assert one.keys() == placed.keys()
    assert all(np.array_equal(one[key], placed[key]) for key in one)


@pytest.mark.slow
def test_workers_that_each_have_a_mesh_leave_the_same_checkpoint(tmp_path: Path) -> None:
    """Two workers, whose gradients are added up, each on one device, on two, and in a pipeline of two stages; data=2 counts the chief."""
    values = []
    for name, workers, options in (
        ("one", "1", []),
        ("two", "2", ["--mesh", "data=2,model=2"]),
        ("pipeline", "1", ["--mesh", "pipeline=2", "--micro", "2"]),
    ):
        flags = [f"--model_dir={tmp_path / name}", "--train_steps=10"]
        command = ["launch", "--worker", workers, "--path", "modern", "--log-dir", f"{name}-logs", *options]
        ended = estimator_bridge_command(*command, DIGITS, *flags, cwd=tmp_path)
        assert ended.code == 0, ended.err[-3000:]
        reader = tf.train.load_checkpoint(str(tmp_path / name))
        values.append({key: reader.get_tensor(key) for key in reader.get_variable_to_shape_map()})
    one, two, pipeline = values
    assert one.keys() == two.keys() == pipeline.keys()
    assert one["global_step"] == 10
    assert all(np.array_equal(one[key], two[key]) for key in one)
    for key in one:
        np.testing.assert_allclose(pipeline[key], one[key], rtol=1e-4, atol=1e-5)
    assert "/device:CPU:1 holds" in (tmp_path / "two-logs" / "worker-0.log").read_text()


@pytest.mark.slow
def test_a_mesh_for_more_workers_than_there_are_is_refused(tmp_path: Path) -> None:
    """The message has both numbers."""
    flags = [f"--model_dir={tmp_path / 'model'}", "--train_steps=10"]
    ended = estimator_bridge_command("run", "--path", "modern", "--mesh", "data=2,model=2", DIGITS, *flags, cwd=tmp_path)
    assert ended.code == 2
    assert "The mesh is for 2 workers, and 1 trains." in ended.err
    assert not list(tmp_path.glob("model/model.ckpt*"))


@pytest.mark.slow
def test_a_mesh_with_a_strategy_of_the_script_is_refused(tmp_path: Path) -> None:
    command = ["run", "--path", "modern", "--mesh", "model=2", ROOT / "tests" / "data" / "mirrored_replicas.py", 5, 0]
    ended = estimator_bridge_command(*command, cwd=tmp_path)
    assert ended.code == 2
    assert "A mesh and RunConfig(train_distribute=MirroredStrategy" in ended.err
    assert "received: model=2, RunConfig(train_distribute=MirroredStrategyV1)" in ended.err
    assert "Leave out train_distribute: run --path modern --mesh model=2; or leave out the mesh." in ended.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "script", "arguments", "devices"),
    [
        (["--micro", "2", "--micro-statistics"], "mirrored_replicas.py", ["5", "0"], 1),
        (["--mesh", "data=2,model=2"], "trains_as_cluster.py", ["model", "5", "mirrored"], 2),
        (["--mesh", "model=2"], "trains_as_cluster.py", ["model", "5", "mirrored"], 2),
    ],
)
def test_the_plan_of_a_script_with_a_strategy_is_that_of_one_worker(
    options: list[str], script: str, arguments: list[str], devices: int, tmp_path: Path
) -> None:
    """Without TF_CONFIG, which a launched worker has, and without a mesh."""
    command = ["plan", "--format", "json", *options, ROOT / "tests" / "data" / script, *arguments]
    ended = estimator_bridge_command(*command, cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    found = json.loads(ended.out)
    assert len(found["devices"]) == devices
    assert found["variables"]


@pytest.mark.slow
def test_a_pipeline_with_parameter_servers_is_refused(tmp_path: Path) -> None:
    mesh = ["--mesh", "pipeline=2", "--micro", "2"]
    command = ["launch", "--worker", "1", "--ps", "1", "--path", "modern", *mesh, "--log-dir", "logs", DIGITS]
    ended = estimator_bridge_command(*command, f"--model_dir={tmp_path / 'model'}", "--train_steps=10", cwd=tmp_path)
    assert ended.code == 2
    assert "A mesh and ParameterServerStrategy cannot be combined" in ended.err
    assert "received: pipeline=2, ParameterServerStrategy (1 chief, 1 worker, 1 ps)" in ended.err
    assert "launch --worker 1 --path modern --mesh data=2,pipeline=2." in ended.err
    assert not list(tmp_path.glob("model/model.ckpt*"))


@pytest.mark.slow
def test_a_comparison_runs_the_modern_side_under_a_plan(tmp_path: Path) -> None:
    """The report says so, and at which level both are equal."""
    options = ["--plan", TOWERS.with_suffix(".toml"), "--out", "report", "--format", "json"]
    ended = estimator_bridge_command("compare", *options, TOWERS, "--train_steps=5", cwd=tmp_path)
    assert ended.code == 0, ended.err[-3000:]
    result = json.loads(ended.out)
    assert result["verdict"] == "equal"
    assert "The modern side holds the model on 2 devices." in result["notes"]
    (level,) = [note for note in result["notes"] if note.startswith("Level of the plan: ")]
    assert level.startswith("Level of the plan: bit-identical")


def launched(folder: Path, example: Path, *options: str) -> dict[str, Any]:
    """Trains in two processes; returns the values of the checkpoint."""
    command = ["launch", "--worker", "1", "--path", "modern", "--log-dir", "logs", *options, example]
    folder.mkdir()
    ended = estimator_bridge_command(*command, "--model_dir=model", "--train_steps=5", cwd=folder)
    assert ended.code == 0, ended.err[-3000:]
    reader = tf.train.load_checkpoint(str(folder / "model"))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.mark.slow
@pytest.mark.parametrize("example", [TOWERS, DIGITS], ids=["two towers", "digits"])
def test_workers_whose_model_is_cut_into_stages_train_what_workers_without_a_mesh_train(tmp_path: Path, example: Path) -> None:
    """Two stages of one device or of two in each process."""
    alone = launched(tmp_path / "alone", example)
    for number, mesh in enumerate(("data=2,pipeline=2", "data=2,model=2,pipeline=2")):
        found = launched(tmp_path / str(number), example, "--mesh", mesh, "--micro", "2")
        assert found.keys() == alone.keys()
        for name, values in alone.items():
            np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-6 * np.abs(values).max(), err_msg=name)
            assert name == "global_step" or np.ptp(values), "it trains"


HALVES = """
[mesh]
model = 2
[[place]]
match = "{}"
shards = 2
"""


def assert_first_losses_are_equal(folder: Path, example: Path, *options: str) -> Any:
    """Compares the legacy path on one device with a plan; rel_diff of up to 1e-6. Returns the report."""
    ended = estimator_bridge_command("compare", *options, "--steps", "5", "--format", "json", example, cwd=folder)
    result = json.loads(ended.out)
    assert result["verdict"] == "equal", result["findings"]
    losses = [(point["legacy"], point["modern"]) for point in result["losses"]]
    assert len(losses) == 5
    assert [modern for _, modern in losses] == pytest.approx([legacy for legacy, _ in losses], rel=1e-6)
    return result


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [["--micro", "4"], ["--mesh", "model=2"], ["--mesh", "pipeline=2", "--micro", "4"]], ids=" ".join
)
@pytest.mark.parametrize("example", [DIGITS, WIDE, SENTENCES, TOWERS], ids=lambda path: f"{path.parent.name} {path.stem}")
def test_the_first_losses_of_each_kind_of_plan_are_those_of_the_legacy_path(
    tmp_path: Path, example: Path, options: list[str]
) -> None:
    """A network with convolutions, wide and deep columns, a BERT-like model and a recommender."""
    assert_first_losses_are_equal(tmp_path, example, *options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "pattern"), [(DIGITS, "hidden/.*"), (SENTENCES, "embeddings/words")], ids=["digits", "sentences"]
)
def test_the_first_losses_with_variables_in_halves_are_those_of_the_legacy_path(
    tmp_path: Path, example: Path, pattern: str
) -> None:
    """A dense layer with its slots, and an embedding of a BERT-like model, whose gradients are clipped by the norm of all."""
    (tmp_path / "plan.toml").write_text(HALVES.format(pattern))
    result = assert_first_losses_are_equal(tmp_path, example, "--plan", "plan.toml")
    if example == DIGITS:
        assert any("Level of the plan: bit-identical" in note for note in result["notes"])
