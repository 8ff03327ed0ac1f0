"""TF1's checkpoint as files of Keras' own, read back by the real loaders, and from each of them back to the old graph."""

from __future__ import annotations

import importlib
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from estimator_bridge.cli.main import main
from estimator_bridge.compat.checkpoint import CheckpointError, ConversionReport, convert
from estimator_bridge.compat.checkpoint.conversion import sides
from estimator_bridge.compat.checkpoint.errors import KerasError, TargetError
from estimator_bridge.compat.checkpoint.writing.publish import write_tensors
from estimator_bridge.compat.keras_files.answering import Answerer
from tests.compat.keras_files import keras_models as nets
from tests.compat.keras_files.keras_models import FAMILIES, X, v1

TF2_15 = tf.__version__.startswith("2.15")
EACH_FAMILY = ["legacy", "new", pytest.param("keras3", marks=pytest.mark.tf221)]
STEPS = 3


class InProcess:
    """Stands for KerasProcess: the same questions and answers, without the seconds that TensorFlow takes to start."""

    def __enter__(self) -> InProcess:
        self._answerer = Answerer()
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, **question: Any) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(json.dumps(self._answerer.answer(json.loads(json.dumps(question)))))
        if "error" in answer:
            raise KerasError(**answer["error"], address=answer["address"])
        return answer


@pytest.fixture(autouse=True)
def _in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sides, "KerasProcess", InProcess)


class Trained(NamedTuple):
    prefix: Path
    prediction: np.ndarray
    values: nets.Values


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    prefix = nets.train_old(tmp_path_factory.mktemp("keras_files") / "old", steps=STEPS)
    prediction, values = nets.restore_old(prefix)
    return Trained(prefix, prediction, values)


@pytest.fixture(scope="module")
def like(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], str]:
    """The network as the user may keep it: untrained, of other values than the checkpoint's."""
    folder = tmp_path_factory.mktemp("like")

    def named(family: str, kind: str) -> str:
        path = folder / f"{family}{kind}"
        if kind == "function":
            return f"{nets.__name__}:{family}_network"
        if not path.exists():
            if kind == ".json":
                path.write_text(nets.network(family, compiled=False).to_json())
            else:
                nets.built(family).save(path, **({} if kind == ".keras" else {"save_format": "tf"}))
        return str(path)

    return named


def slots_of(model: Any) -> dict[str, np.ndarray]:
    """Adam's state by TF1's names, from the real optimizer's own attributes."""
    optimizer = model.optimizer
    found = {"global_step": np.asarray(optimizer.iterations)}
    names = ["net/hidden/kernel", "net/hidden/bias", "net/out/kernel", "net/out/bias"]
    for number, name in enumerate(names):
        variable = model.trainable_variables[number]
        if hasattr(optimizer, "get_slot"):
            m, v = optimizer.get_slot(variable, "m"), optimizer.get_slot(variable, "v")
        elif hasattr(optimizer, "_momentums"):
            m, v = optimizer._momentums[number], optimizer._velocities[number]
        found |= {f"{name}/Adam": np.asarray(m), f"{name}/Adam_1": np.asarray(v)}
    return found


def check_prediction(found: Any, old: Trained) -> None:
    """Tolerance for outputs of the order of 1: another kernel adds up in another order."""
    np.testing.assert_allclose(found, old.prediction, rtol=0, atol=1e-6)


def check_state(model: Any, old: Trained) -> None:
    found = slots_of(model)
    assert found["global_step"] == STEPS
    for name, value in found.items():
        np.testing.assert_array_equal(value, old.values[name], err_msg=name)


def check_back(source: Path, old: Trained, folder: Path, *likes: str | Path) -> None:
    """Into the old graph with another number of partitions, by TF1's Saver."""
    report = convert(
        source, folder / "model.ckpt-3", to="name-based", like=[*likes, old.prefix], partition=[("net/hidden/kernel", 3)]
    )
    assert report.written, report.to_json()
    prediction, values = nets.restore_old(folder / "model.ckpt-3", shards=3)
    np.testing.assert_array_equal(prediction, old.prediction)
    assert values.keys() == old.values.keys()
    for name, value in old.values.items():
        np.testing.assert_allclose(values[name], value, rtol=3e-7, atol=0, err_msg=name)  # beta powers are computed anew


@pytest.mark.parametrize(
    ("family", "kind"),
    [
        *itertools.product(("legacy", "new"), (".json", ".keras", "function", "_saved_model")),
        # Keras 3 loads no SavedModel as a model.
        *(pytest.param("keras3", kind, marks=pytest.mark.tf221) for kind in (".json", ".keras", "function")),
    ],
)
def test_a_model_as_like(family: str, kind: str, old: Trained, like: Any, tmp_path: Path) -> None:
    target = tmp_path / "m"
    report = convert(old.prefix, target, like=like(family, kind), optimizer_family=None if family == "keras3" else family)
    assert report.written
    assert report.sharing == ("link",)
    model = nets.built(family)
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(str(target)).assert_consumed()
    check_prediction(model(X), old)
    check_state(model, old)
    np.testing.assert_array_equal(nets.restore_old(target)[0], old.prediction)
    said = " ".join(report.warnings)
    assert ("was made for it: learning_rate 0.001 are" in said) == (kind == ".json")  # the powers tell the betas
    assert ("it is your own code" in said) == (kind == "function")


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_keras_weights(family: str, old: Trained, like: Any, tmp_path: Path) -> None:
    target = tmp_path / "m.weights.h5"
    report = convert(old.prefix, target, to="keras-weights", like=like(family, "function"))
    model = nets.built(family)
    model.load_weights(str(target))
    check_prediction(model(X), old)
    assert not list(tmp_path.glob(".*"))
    if family == "legacy":
        check_stateless(report, target, old, tmp_path, like(family, "function"))
    else:
        check_state(model, old)
        check_back(target, old, tmp_path / "back", like(family, "function"))


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_keras_files(family: str, old: Trained, like: Any, tmp_path: Path) -> None:
    target = tmp_path / "m.keras"
    report = convert(old.prefix, target, to="keras", like=like(family, ".keras"))
    model = importlib.import_module(FAMILIES[family]).models.load_model(target)
    check_prediction(model(X), old)
    if family == "legacy":
        check_stateless(report, target, old, tmp_path)
    else:
        check_state(model, old)
        check_back(target, old, tmp_path / "back")


def check_stateless(report: ConversionReport, target: Path, old: Trained, folder: Path, *likes: str) -> None:
    """Variables that the format leaves out are reported on the way there, and are missing on the way back."""
    assert any("state of tf_keras.optimizers.legacy" in warning for warning in report.warnings)
    slots = {name for name in old.values if "/Adam" in name}
    assert {slot.source for slot in report.slots if not slot.target} == slots
    back = convert(target, folder / "back", to="name-based", like=[*likes, old.prefix])
    assert not back.written
    assert set(back.unmatched_targets) == slots | {"global_step", "beta1_power", "beta2_power"}


@pytest.mark.parametrize("family", ["legacy", "new"])
@pytest.mark.parametrize("kind", [".keras", "_saved_model"])
def test_saved_models(family: str, kind: str, old: Trained, like: Any, tmp_path: Path) -> None:
    target = tmp_path / "exported"
    convert(old.prefix, target, to="saved-model", like=like(family, kind))
    loaded = tf.saved_model.load(str(target))
    check_prediction(next(iter(loaded.signatures["serving_default"](tf.constant(X)).values())), old)
    model = importlib.import_module(FAMILIES[family]).models.load_model(target)
    check_prediction(model(X), old)
    trained = nets.built(family)
    tf.train.Checkpoint(trained).read(str(target / "variables" / "variables")).expect_partial()
    check_state(trained, old)
    check_back(target, old, tmp_path / "back")


@pytest.mark.tf221
def test_a_saved_model_of_keras_3_is_for_serving(old: Trained, like: Any, tmp_path: Path) -> None:
    report = convert(old.prefix, tmp_path / "exported", to="saved-model", like=like("keras3", ".keras"))
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    check_prediction(loaded.serve(X), old)
    assert any("without an optimizer" in warning for warning in report.warnings)


@pytest.mark.tf221
def test_an_export_of_keras_3_gets_other_values(old: Trained, tmp_path: Path) -> None:
    """It keeps each variable twice: what is served and what is listed must not part."""
    nets.network("keras3").export(str(tmp_path / "untrained"), verbose=False)
    assert convert(old.prefix, tmp_path / "exported", to="saved-model", like=tmp_path / "untrained").written
    loaded = tf.saved_model.load(str(tmp_path / "exported"))
    check_prediction(loaded.serve(X), old)
    assert sorted(v.numpy().sum() for v in loaded.variables) == sorted(v.numpy().sum() for v in loaded._all_variables)
    back = convert(tmp_path / "exported", tmp_path / "back", to="name-based", like=old.prefix, allow_unmatched=True)
    for pair in back.matches:
        np.testing.assert_array_equal(nets.read(tmp_path / "back")[pair.target], old.values[pair.target])
    assert len(back.matches) == 4


@pytest.mark.parametrize("whole", [True, False], ids=["model", "weights"])
def test_the_older_hdf5_format_as_a_source(whole: bool, old: Trained, like: Any, tmp_path: Path) -> None:
    convert(old.prefix, tmp_path / "m", like=like("legacy", "function"))
    model = nets.built("legacy")
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(str(tmp_path / "m")).assert_consumed()
    if whole:
        model.save(tmp_path / "m.h5")
        check_back(tmp_path / "m.h5", old, tmp_path / "back")
        return
    model.save_weights(tmp_path / "m.h5")
    for name, likes in (("model", [like("legacy", ".json"), old.prefix]), ("names", [old.prefix])):
        report = convert(tmp_path / "m.h5", tmp_path / name, to="name-based", like=likes, allow_unmatched=True)
        assert "net/out/bias/Adam" in report.unmatched_targets
        values = nets.read(tmp_path / name)
        assert values.keys() == {name for name in old.values if name.startswith("net/") and "Adam" not in name}
        for variable, value in values.items():
            np.testing.assert_array_equal(value, old.values[variable])


@pytest.mark.tf221
def test_from_tf_keras_to_keras_3(old: Trained, like: Any, tmp_path: Path) -> None:
    convert(old.prefix, tmp_path / "two.keras", to="keras", like=like("new", ".keras"))
    report = convert(tmp_path / "two.keras", tmp_path / "three.keras", to="keras", like=like("keras3", ".json"))
    assert report.written, report.to_json()
    model = importlib.import_module("keras").models.load_model(tmp_path / "three.keras")
    check_prediction(model(X), old)
    check_state(model, old)


def test_momentum_goes_there_and_back_by_the_models_own_learning_rate(tmp_path: Path) -> None:
    def momentum() -> Any:
        return v1.train.MomentumOptimizer(nets.RATE, 0.9)

    source = nets.train_old(tmp_path / "old", momentum)
    model = nets.network("new", compiled=False)
    model.compile(optimizer=importlib.import_module("tf_keras").optimizers.SGD(0.25, momentum=0.9), loss="mse")
    model.save(tmp_path / "like.keras")
    convert(source, tmp_path / "m.keras", to="keras", like=tmp_path / "like.keras")
    loaded = importlib.import_module("tf_keras").models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(loaded.optimizer.momentums[3], -0.25 * nets.read(source)["net/out/bias/Momentum"])
    convert(tmp_path / "m.keras", tmp_path / "back", to="name-based", like=source)
    values = nets.read(source)
    for name, value in nets.restore_old(tmp_path / "back", optimizer=momentum)[1].items():
        np.testing.assert_array_equal(value, values[name])  # 0.25 is a power of two


@pytest.mark.parametrize("family", EACH_FAMILY)
def test_statistics_and_embeddings(family: str, tmp_path: Path) -> None:
    """Variables that are not trained, and kinds of layers with names of their own."""
    library, random = importlib.import_module(FAMILIES[family]), np.random.RandomState(1)
    layers = library.layers
    model = library.Sequential(
        [layers.InputLayer((5,)), layers.Embedding(7, 3, name="words"), layers.BatchNormalization(name="bn")]
    )
    namespace = library.optimizers.legacy if family == "legacy" else library.optimizers
    model.compile(namespace.Adagrad(0.5, initial_accumulator_value=0.1, epsilon=1e-30), "mse")
    model.save(tmp_path / "like.keras")
    values = {f"net/bn/{name}": random.rand(3) for name in ("gamma", "beta", "moving_mean", "moving_variance")}
    values |= {"net/words/embedding_weights": random.rand(7, 3)}
    trained = [name for name in values if "moving" not in name]
    values |= {f"{name}/Adagrad": random.rand(*values[name].shape) for name in trained}
    source = write_tensors(tmp_path / "old", {name: value.astype("f4") for name, value in values.items()} | {"global_step": 5})
    report = convert(source, tmp_path / "m.keras", to="keras", like=tmp_path / "like.keras")
    assert report.written, report.to_json()
    loaded = library.models.load_model(tmp_path / "m.keras")
    expected = [
        values["net/words/embedding_weights"],
        *(values[f"net/bn/{n}"] for n in ("gamma", "beta", "moving_mean", "moving_variance")),
    ]
    for variable, value in zip(loaded.get_weights(), expected, strict=True):
        np.testing.assert_array_equal(variable, value.astype("f4"))
    if family != "legacy":
        slots = [np.asarray(slot) for slot in loaded.optimizer._accumulators]
        order = ["net/words/embedding_weights", "net/bn/gamma", "net/bn/beta"]
        for slot, name in zip(slots, order, strict=True):
            np.testing.assert_array_equal(slot, values[f"{name}/Adagrad"].astype("f4"))
        convert(tmp_path / "m.keras", tmp_path / "back", to="name-based", like=source)
        for name, value in nets.read(tmp_path / "back").items():
            np.testing.assert_array_equal(value, nets.read(source)[name])


def test_a_model_of_tf_keras_with_names_from_scripts(old: Trained, tmp_path: Path) -> None:
    """``tf.keras`` is Keras 2 or 3, as TensorFlow and the environment say; the model itself tells which."""
    report = convert(old.prefix, tmp_path / "m", like=f"{__name__}:of_tf_keras")
    assert report.written, report.to_json()
    model = of_tf_keras()
    model.optimizer.build(model.trainable_variables)
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(str(tmp_path / "m")).assert_consumed()
    check_prediction(model(X), old)


def of_tf_keras() -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.InputLayer((4,)), layers.Dense(3, "tanh", name="hidden"), layers.Dense(1, name="out")])
    model.compile(tf.keras.optimizers.Adam(nets.RATE, epsilon=1e-8), "mse")
    return model


def test_a_model_of_the_other_family(old: Trained, like: Any, tmp_path: Path) -> None:
    report = convert(old.prefix, tmp_path / "m.keras", to="keras", like=like("legacy", ".keras"), optimizer_family="new")
    assert any("compiled again with Adam of the new family" in warning for warning in report.warnings)
    model = importlib.import_module("tf_keras").models.load_model(tmp_path / "m.keras")
    check_state(model, old)
    assert (model.loss, model.optimizer.epsilon) == ("mse", 1e-8)
    assert float(model.optimizer.learning_rate) == pytest.approx(nets.RATE)


@pytest.mark.tf221
def test_keras_3_has_no_families(old: Trained, like: Any, tmp_path: Path) -> None:
    with pytest.raises(KerasError, match="one family"):
        convert(old.prefix, tmp_path / "m", like=like("keras3", ".keras"), optimizer_family="legacy")


def test_an_optimizer_that_keras_does_not_have_is_left_out(tmp_path: Path, like: Any) -> None:
    shapes = {"net/hidden/kernel": (4, 3), "net/hidden/bias": (3,), "net/out/kernel": (3, 1), "net/out/bias": (1,)}
    slots = {f"{name}/{slot}": shape for name, shape in shapes.items() for slot in ("LAMB", "LAMB_1")}
    values = {name: np.ones(shape, "f4") for name, shape in {**shapes, **slots}.items()}
    source = write_tensors(tmp_path / "old", {**values, "global_step": 5})
    report = convert(source, tmp_path / "m", like=like("new", ".json"))
    assert report.written
    assert {slot.source for slot in report.slots} == set(slots)
    assert not any(slot.target for slot in report.slots)
    assert {"has no Lamb", "8 slots are left out"} <= {
        part for w in report.warnings for part in ("has no Lamb", "8 slots are left out") if part in w
    }


def wrong_function() -> Any:
    return "no model"


def failing_function() -> Any:
    raise RuntimeError("the user's own trouble")


def unbuilt() -> Any:
    return importlib.import_module("tf_keras").Sequential([importlib.import_module("tf_keras").layers.Dense(1)])


@pytest.mark.parametrize(
    ("like_", "told"),
    [
        (f"{__name__}:wrong_function", "not a Keras model"),
        (f"{__name__}:failing_function", f"RuntimeError: the user's own trouble at {__file__}:"),
        (f"{__name__}:unbuilt", "no variables yet"),
        (f"{__name__}:missing", f"The model function {__name__}:missing cannot be called"),
        ("no_such_module:make", "the module is searched in this folder and in PYTHONPATH"),
        ("text.json", "JSON"),
        ("list.json", "not the config of a model"),
        ("empty.keras", "zip"),
        ("junk.h5", "file signature"),
    ],
)
def test_models_that_cannot_be_loaded(like_: str, told: str, old: Trained, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "text.json").write_text("model")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "empty.keras").write_bytes(b"")
    (tmp_path / "junk.h5").write_bytes(b"junk" * 99)
    monkeypatch.chdir(tmp_path)
    for to, name in (("bilingual", "m"), ("keras", "m.keras")):
        with pytest.raises(KerasError, match=told):
            convert(old.prefix, tmp_path / "new" / name, to=to, like=like_)  # type: ignore[arg-type]
        assert not (tmp_path / "new").exists()


@pytest.fixture
def damaged(old: Trained, like: Any, tmp_path: Path) -> tuple[Path, bytes]:
    path = tmp_path / "damaged.keras"
    path.write_bytes(Path(like("new", ".keras")).read_bytes())
    return path, path.read_bytes()


@pytest.mark.parametrize("harm", ["cut", "flipped", "no weights"])
def test_damaged_sources(harm: str, old: Trained, damaged: tuple[Path, bytes], tmp_path: Path, capsys: Any) -> None:
    path, data = damaged
    middle = data.index(b"model.weights.h5") + 3000
    flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    changed = {"cut": data[:middle], "flipped": flipped, "no weights": data[: len(data) // 9]}
    path.write_bytes(changed[harm])
    arguments = [str(path), str(tmp_path / "new" / "m"), "--to", "name-based", "--like", str(old.prefix)]
    assert main(["convert", "checkpoint", *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
    assert path.read_bytes() == changed[harm]


def test_a_failed_answer_has_the_address_of_its_message() -> None:
    answer = Answerer().answer({"do": "load", "how": "file", "name": "missing.keras"})
    anchor = answer["address"].removeprefix("estimator-bridge explain ")

    assert main(["explain", anchor]) == 0


def test_a_file_of_weights_needs_its_model(old: Trained, like: Any, tmp_path: Path) -> None:
    convert(old.prefix, tmp_path / "m.weights.h5", to="keras-weights", like=like("new", "function"))
    with pytest.raises(KerasError, match="does not identify its variables"):
        convert(tmp_path / "m.weights.h5", tmp_path / "n", to="name-based", like=old.prefix)
    with pytest.raises(KerasError, match="state of an optimizer"):
        convert(tmp_path / "m.weights.h5", tmp_path / "n", to="name-based", like=[like("new", ".json"), old.prefix])


def test_the_source_of_a_keras_file_has_values(like: Any, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no values to convert"):
        convert(like("new", ".json"), tmp_path / "m", to="name-based")


def test_an_existing_target_stays_unless_replaced(old: Trained, like: Any, tmp_path: Path) -> None:
    target = tmp_path / "m.keras"
    target.write_text("mine")
    with pytest.raises(TargetError, match="something else"):
        convert(old.prefix, target, to="keras", like=like("new", ".keras"))
    assert target.read_text() == "mine"
    convert(old.prefix, target, to="keras", like=like("new", ".keras"), overwrite=True)
    assert importlib.import_module("tf_keras").models.load_model(target).optimizer.iterations == STEPS
    with pytest.raises(TargetError, match="cannot be replaced"):
        convert(old.prefix, tmp_path, to="saved-model", like=like("new", ".keras"), overwrite=True)


def test_a_failed_write_changes_nothing(old: Trained, like: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from estimator_bridge.compat.keras_files import answering

    def interrupted(model: Any, prefix: str, path: Path, to: str, partial: bool) -> None:
        path.write_bytes(b"half")
        raise OSError("no space left")

    monkeypatch.setattr(answering, "save", interrupted)
    target = tmp_path / "new" / "m.keras"
    with pytest.raises(KerasError, match="no space left"):
        convert(old.prefix, target, to="keras", like=like("new", ".keras"))
    assert not target.parent.exists()
    target.parent.mkdir()
    target.write_text("mine")
    with pytest.raises(KerasError, match="no space left"):
        convert(old.prefix, target, to="keras", like=like("new", ".keras"), overwrite=True)
    assert [path.read_text() for path in target.parent.iterdir()] == ["mine"]


def test_unmatched_variables_keep_the_models_values_when_allowed(old: Trained, like: Any, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"to": "keras", "like": like("new", ".keras"), "drop": ["net/out/bias"]}
    refused = convert(old.prefix, tmp_path / "m.keras", **arguments)
    assert not refused.written
    assert any("bias" in key for key in refused.unmatched_targets)
    convert(old.prefix, tmp_path / "m.keras", **arguments, allow_unmatched=True)
    model = importlib.import_module("tf_keras").models.load_model(tmp_path / "m.keras")
    np.testing.assert_array_equal(model.layers[-1].bias, [0.0])
    np.testing.assert_array_equal(model.layers[-1].kernel, old.values["net/out/kernel"])


DOCUMENTED = Path(__file__).parents[3] / "docs" / "how-to" / "convert-checkpoints.md"


def documented() -> list[list[str]]:
    lines = [line.strip() for line in DOCUMENTED.read_text().splitlines()]
    start = "estimator-bridge convert checkpoint "
    return [shlex.split(line)[1:] for line in lines if line.startswith(start)]


@pytest.fixture(scope="module")
def as_documented(tmp_path_factory: pytest.TempPathFactory, old: Trained, like: Any) -> Path:
    """Everything that the documentation's commands name."""
    folder = tmp_path_factory.mktemp("documented")
    for step in (0, 1000):
        convert(old.prefix, folder / "old" / f"model.ckpt-{step}", to="name-based", rename=[("^net/hidden/kernel", "emb")])
    (folder / "config.json").write_text(nets.network("new", compiled=False).to_json())
    shutil.copytree(like("new", "_saved_model"), folder / "untrained_saved_model")
    model = nets.built("legacy")
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).write(str(folder / "keras" / "ckpt-1000"))
    if not TF2_15:
        nets.network("keras3").save(folder / "model_of_keras_3.keras")
    (folder / "trainer").mkdir()
    (folder / "trainer" / "model.py").write_text(f"from {nets.__name__} import new_network as make")
    nets.network("new", compiled=False).save_weights(folder / "m.weights.h5")
    return folder


def test_the_documentation_has_commands() -> None:
    assert len(documented()) > 9


@pytest.mark.parametrize("arguments", documented(), ids=" ".join)
def test_the_documented_commands(arguments: list[str], as_documented: Path, tmp_path: Path, monkeypatch: Any) -> None:
    if TF2_15 and "model_of_keras_3.keras" in arguments:
        pytest.skip("needs Keras 3")
    shutil.copytree(as_documented, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(str(tmp_path / "here"))
    for source, kind in (("model.keras", "keras"), ("exported", "saved-model")):
        if arguments[2] == source:
            convert("old/model.ckpt-1000", source, to=kind, like="untrained_saved_model")  # type: ignore[arg-type]
    weights_alone = ["--allow-unmatched"] if arguments[2] == "m.weights.h5" else []  # the file has no slots
    assert main([*arguments, "--overwrite", *weights_alone]) == 0
    assert list(tmp_path.glob(f"here/{arguments[3]}*"))


USERS_MODULE = """
import tf_keras
print("printed by the user's module")

def make():
    model = tf_keras.Sequential([
        tf_keras.layers.InputLayer((4,)), tf_keras.layers.Dense(3, "tanh", name="hidden"), tf_keras.layers.Dense(1, name="out")
    ])
    model.compile(tf_keras.optimizers.legacy.Adam(0.05, epsilon=1e-8), "mse")
    return model
"""


WITHOUT_CONFIGURATION = """
class Own(tf_keras.optimizers.legacy.Adam):
    def get_config(self):
        raise NotImplementedError
"""


@pytest.mark.parametrize("is_own", [False, True])
def test_the_command_in_processes_of_its_own(old: Trained, tmp_path: Path, is_own: bool) -> None:
    module = USERS_MODULE
    if is_own:
        module = module.replace("tf_keras.optimizers.legacy.Adam(", "Own(").replace(
            "\ndef make", WITHOUT_CONFIGURATION + "\ndef make"
        )
    (tmp_path / "users_module.py").write_text(module)
    ask = (
        "import sys\nfrom estimator_bridge.cli.main import main\n"
        "code = main(['convert', 'checkpoint', *sys.argv[1:], '--format', 'json'])\n"
        "assert 'tensorflow' not in sys.modules\nsys.exit(code)"
    )
    command = [sys.executable, "-c", ask, str(old.prefix), "new/m", "--like", "users_module:make"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3] / "src")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["written"]
    assert "runs your code" in done.stderr
    assert "printed by the user's module" in done.stderr
    doubts = [one for one in json.loads(done.stdout)["warnings"] if "epsilon" in one or "no checkpoint identifies" in one]
    assert bool(doubts) is is_own
    model = nets.built("legacy")
    tf.train.Checkpoint(model=model, optimizer=model.optimizer).restore(str(tmp_path / "new" / "m")).assert_consumed()
    check_state(model, old)
