"""Trainings whose number of workers may change: the rows of each step, the update, where the input goes on, and what is refused."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.launcher.ports import free_ports
from estimator_bridge.modern.parallel.elastic.position import FILE, InputPosition, check_whole, common_position, keep_position
from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL, ParallelPlan, of_dict
from estimator_bridge.modern.parallel.plans.reading import read_plan
from estimator_bridge.runtime.dataset_sharding import definition
from tests.modern.jobs import engine, estimator, linear, regression_input, saved, spec, v1
from tests.running import ROOT, estimator_bridge_command

SCRIPT = ROOT / "tests" / "data" / "elastic.py"
ALONE: Any = SimpleNamespace(worker=0, step_batches=(4,), gather=lambda row: row[None])


@settings(max_examples=25)
@given(shares=st.lists(st.integers(1, 4), min_size=1, max_size=4), step=st.integers(0, 5), first=st.integers(0, 9))
def test_workers_take_the_batches_of_each_step_in_one_order(shares: list[int], step: int, first: int) -> None:
    """The oracle is a slice of the list of all batches."""
    number = sum(shares)
    position = InputPosition(1, first, number)
    dataset = tf.data.Dataset.range(8 * number).map(lambda row: (row,))
    taken = []
    for worker in range(len(shares)):
        own: Any = SimpleNamespace(worker=worker, step_batches=tuple(shares))
        taken.append([int(row) for (row,) in position.rest(dataset, first + step, own)])
    steps = [[taken[worker].pop(0) for worker, share in enumerate(shares) for _ in range(share)] for _ in range(8 - step)]
    assert steps == np.arange(8 * number).reshape(8, number)[step:].tolist()
    assert not any(taken)


def by_hand(steps: int, batches: int, clip: float, by_rows: bool = False) -> np.ndarray:
    """Returns the kernel and bias of ``clipped_linear`` after some steps on ``uneven_input``, computed in float64."""
    x = np.concatenate([ROWS, np.ones([len(ROWS), 1])], axis=1).astype(np.float64)
    y = ROWS.sum(axis=1, dtype=np.float64)
    weights = np.concatenate([np.linspace(-0.5, 0.5, 3), [0.0]])
    parts = [slice(0, 4), slice(4, 8), slice(8, 10)]
    for number in range(steps):
        update = np.zeros(4)
        taken = [parts[(number * batches + index) % 3] for index in range(batches)]
        for own in taken:
            share = len(y[own]) * batches / sum(len(y[one]) for one in taken) if by_rows else 1
            gradient = 2 * x[own].T @ (x[own] @ weights - y[own]) / len(y[own]) / batches
            update += share * gradient * min(1.0, clip / np.linalg.norm(gradient))
        weights -= 0.1 * update
    return weights


ROWS = np.random.RandomState(3).normal(size=[10, 3]).astype(np.float32)


def uneven_input() -> Any:
    """Batches of 4, 4 and 2 rows, again and again."""
    return tf.data.Dataset.from_tensor_slices(({"x": ROWS}, ROWS.sum(axis=1, keepdims=True))).batch(4).repeat()


def clipped_linear(features: Any, labels: Any, mode: str) -> Any:
    loss = v1.losses.mean_squared_error(labels, linear(features["x"]))
    optimizer = v1.train.GradientDescentOptimizer(0.1)
    gradients, variables = zip(*optimizer.compute_gradients(loss), strict=True)
    clipped, _ = tf.clip_by_global_norm(gradients, 0.2)
    return spec(mode, loss, optimizer.apply_gradients(zip(clipped, variables, strict=True), v1.train.get_global_step()))


@pytest.mark.parametrize("batches", [1, 4])
def test_a_step_is_that_of_as_many_workers_as_it_takes_batches(tmp_path: Path, batches: int) -> None:
    """Each batch counts the same, however many rows it has, and its gradients are clipped as a worker would."""
    own = engine("modern", micro=batches, elastic=(1, batches))
    own.train(estimator(clipped_linear, tmp_path), uneven_input, max_steps=7)
    values = saved(tmp_path)
    found = np.append(values["dense/kernel"].ravel(), values["dense/bias"])
    np.testing.assert_allclose(found, by_hand(7, batches, 0.2), rtol=2e-6)


def test_with_shares_a_smaller_batch_counts_by_its_rows(tmp_path: Path) -> None:
    """The update is that of one batch with all rows, but each batch is clipped by itself."""
    engine("modern", micro=4, shares=(4,)).train(estimator(clipped_linear, tmp_path), uneven_input, max_steps=7)
    values = saved(tmp_path)
    found = np.append(values["dense/kernel"].ravel(), values["dense/bias"])
    expected, alike = by_hand(7, 4, 0.2, by_rows=True), by_hand(7, 4, 0.2)
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    assert np.abs(alike - expected).max() > 1e-3, "the numbers of rows matter"


def test_a_training_that_starts_again_goes_on_with_its_next_batch(tmp_path: Path) -> None:
    """Also in an input that is shuffled without a seed, which the position remembers."""

    def shuffled() -> Any:
        return uneven_input().shuffle(50)

    for folder, ends in (("once", [12]), ("twice", [5, 12])):
        for end in ends:
            if folder == "twice":
                (tmp_path / folder).mkdir(exist_ok=True)
                (tmp_path / folder / FILE).write_text((tmp_path / "once" / FILE).read_text())
            made = estimator(clipped_linear, tmp_path / folder, tf_random_seed=None)
            engine("modern", micro=2, elastic=(1, 2)).train(made, shuffled, max_steps=end)
    once, twice = (saved(tmp_path / folder) for folder in ("once", "twice"))
    assert all(np.array_equal(once[name], twice[name]) for name in once)
    assert json.loads((tmp_path / "once" / FILE).read_text())["batches"] == 2


def test_an_input_that_ends_within_a_step_ends_before_it(tmp_path: Path) -> None:
    """Five batches make two steps of two."""
    engine("modern", micro=2, elastic=(1, 2)).train(
        estimator(clipped_linear, tmp_path), lambda: uneven_input().take(5), max_steps=9
    )
    assert saved(tmp_path)["global_step"] == 2


def with_context(input_context: Any) -> Any:
    return regression_input()


def interleaved(sloppy: bool) -> Any:
    """A dataset whose order may change from run to run if it is sloppy."""
    mixed = tf.data.experimental.parallel_interleave(lambda _: regression_input(), cycle_length=2, sloppy=sloppy)
    return tf.data.Dataset.range(2).apply(mixed)


def without_order() -> Any:
    options = tf.data.Options()
    options.deterministic = False
    return regression_input().with_options(options)


def of_any_order() -> Any:
    return regression_input().map(lambda *batch: batch, num_parallel_calls=2, deterministic=False)


def generated() -> Any:
    rows = tf.data.Dataset.from_generator(lambda: iter(ROWS), tf.float32, [3])
    return rows.map(lambda x: ({"x": x}, tf.reduce_sum(x, keepdims=True))).batch(4)


@pytest.mark.parametrize(
    ("input_fn", "said"),
    [
        (with_context, "input_context"),
        (lambda: regression_input().shard(2, 0), "shards its dataset"),
        (lambda: interleaved(True), "order that differs"),
        (generated, "reads its data by Python"),
        (without_order, "order that differs"),
        (of_any_order, "order that differs"),
        (lambda: tf.data.Dataset.range(2).flat_map(lambda _: of_any_order()), "order that differs"),
        (lambda: tf.data.Dataset.range(2).flat_map(lambda _: interleaved(True)), "order that differs"),
    ],
)
def test_inputs_whose_batches_nobody_can_count_are_refused(tmp_path: Path, input_fn: Callable[..., Any], said: str) -> None:
    with pytest.raises(NotSupportedError, match=said):
        engine("modern", micro=2, elastic=(1, 2)).train(estimator(clipped_linear, tmp_path), input_fn, max_steps=1)
    assert not list(tmp_path.glob("model.ckpt*.index"))
    assert not (tmp_path / FILE).exists()


def test_an_interleaved_input_with_an_order_is_none_of_them(tmp_path: Path) -> None:
    made = estimator(clipped_linear, tmp_path)
    engine("modern", micro=2, elastic=(1, 2)).train(made, lambda: interleaved(False), max_steps=1)
    assert saved(tmp_path)["global_step"] == 1


def counting_two(features: Any, labels: Any, mode: str) -> Any:
    made = clipped_linear(features, labels, mode)
    with tf.control_dependencies([made.train_op]):
        return made._replace(train_op=v1.assign_add(v1.train.get_global_step(), 1))


def normalised(features: Any, labels: Any, mode: str) -> Any:
    predicted = linear(v1.layers.batch_normalization(features["x"], training=True))
    loss = v1.losses.mean_squared_error(labels, predicted)
    train_op = v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step())
    return spec(mode, loss, tf.group(train_op, *v1.get_collection(v1.GraphKeys.UPDATE_OPS)))


@pytest.mark.parametrize(
    ("model_fn", "steps", "said"),
    [
        (counting_two, {"max_steps": 4}, "does not count each step as one"),
        (normalised, {"max_steps": 4}, "changes the variable"),
        (clipped_linear, {"steps": 4}, "one call of train, with max_steps"),
    ],
)
def test_trainings_that_would_go_on_elsewhere_are_refused(
    tmp_path: Path, model_fn: Callable[..., Any], steps: dict[str, int], said: str
) -> None:
    with pytest.raises(NotSupportedError, match=said):
        engine("modern", micro=2, elastic=(1, 2)).train(estimator(model_fn, tmp_path), uneven_input, **steps)


def test_a_second_call_of_train_is_refused(tmp_path: Path) -> None:
    own = engine("modern", micro=2, elastic=(1, 2))
    own.train(estimator(clipped_linear, tmp_path), uneven_input, max_steps=1)
    with pytest.raises(NotSupportedError, match="a second call"):
        own.train(estimator(clipped_linear, tmp_path), uneven_input, max_steps=2)


def beside_the_batch(features: Any, labels: Any, mode: str) -> Any:
    """A penalty of its own variable, and a table whose rows are always the same."""
    own = v1.get_variable("own", initializer=1.0)
    table = v1.get_variable("table", initializer=np.ones([4, 3], np.float32))
    rows = tf.nn.embedding_lookup(table, [0, 2])
    loss = v1.losses.mean_squared_error(labels, features["x"] @ tf.reshape(tf.reduce_sum(rows, 0), [3, 1]))
    loss += own**2 + tf.reduce_sum(
        tf.nn.embedding_lookup(v1.get_variable("still", initializer=np.ones([3, 2], np.float32)), [1])
    )
    return spec(mode, loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss, v1.train.get_global_step()))


def test_gradients_that_depend_on_no_batch_count_for_each(tmp_path: Path) -> None:
    """As in as many workers: 1 - 0.1 * 2 after a step, and 1 - 0.1 of the row that is looked up, in float64 for the table."""
    engine("modern", micro=4, elastic=(1, 4)).train(estimator(beside_the_batch, tmp_path), uneven_input, max_steps=1)
    values = saved(tmp_path)
    np.testing.assert_allclose(values["own"], 0.8, rtol=1e-6)
    np.testing.assert_allclose(values["still"], [[1, 1], [0.9, 0.9], [1, 1]], rtol=1e-6)
    x, y = ROWS.astype(np.float64), ROWS.sum(axis=1, dtype=np.float64)
    gradient = np.zeros(3)
    for own in (slice(0, 4), slice(4, 8), slice(8, 10), slice(0, 4)):
        gradient += 2 * x[own].T @ (x[own] @ np.full(3, 2.0) - y[own]) / len(y[own]) / 4
    expected = np.ones([4, 3]) - 0.1 * np.outer([1, 0, 1, 0], gradient)
    np.testing.assert_allclose(values["table"], expected, rtol=1e-5)


def test_workers_with_different_inputs_are_refused(tmp_path: Path) -> None:
    """Each would leave out rows of its own."""
    pipeline: Any
    with tf.Graph().as_default():
        own = tf.data.Dataset.from_tensor_slices([0, 2, 4])
        other = tf.data.Dataset.from_tensor_slices([1, 3, 5])
        pipeline = SimpleNamespace(queue_runners=[], datasets={"x": own})
        rows = [tf.get_static_value(tf.constant(list(map(int, definition([one]))), tf.int64)) for one in (own, other)]
        two: Any = SimpleNamespace(gather=lambda _: SimpleNamespace(numpy=lambda: np.stack(rows)))
        with pytest.raises(NotSupportedError, match="gives the workers different datasets"):
            check_whole(pipeline, uneven_input, two)


def test_the_position_is_written_once_and_read_afterwards(tmp_path: Path) -> None:
    first = common_position(str(tmp_path / "new"), 30, ALONE)
    assert not (tmp_path / "new").exists(), "the input may still be refused"
    keep_position(str(tmp_path / "new"), first, ALONE)
    keep_position(str(tmp_path / "new"), InputPosition(1, 2, 3), ALONE)
    assert (first.first_step, first.batches) == (30, 4)
    assert common_position(str(tmp_path / "new"), 50, ALONE) == first
    assert first.used(50) == 80
    with pytest.raises(BridgeError, match="began at a later step"):
        common_position(str(tmp_path / "new"), 20, ALONE)
    more: Any = SimpleNamespace(**{**vars(ALONE), "step_batches": (2, 4)})
    with pytest.raises(BridgeError, match=r"takes 4 batches for each step, and this plan takes 6"):
        common_position(str(tmp_path / "new"), 50, more)


FIELDS = st.fixed_dictionaries(
    {},
    optional={name: st.integers(-3, 2**40) | st.text(max_size=3) | st.booleans() for name in ("seed", "first_step", "batches")},
)


@given(text=st.just("\udcff") | st.text(max_size=30) | FIELDS.map(json.dumps) | st.lists(st.integers()).map(json.dumps))
def test_a_broken_position_is_an_error_and_stays_as_it_is(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("model")
    (folder / FILE).write_text(text, encoding="utf-8", errors="surrogateescape")
    before = (folder / FILE).read_bytes()
    try:
        found = common_position(str(folder), 5, ALONE)
    except BridgeError:
        pass
    else:
        assert vars(found) == json.loads(text)
    assert (folder / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[elastic]\nworkers = [4, 1]", "workers has a value"),
        ("[elastic]\nworkers = [1]", "workers has a value"),
        ("[elastic]\nworkers = [3, 4]\n[batch]\nmicro = 10", "no number of workers from 3 to 4"),
        ("[elastic]\nworkers = [1, 4]", "1 number of workers from 1 to 4 divides the batches of a step"),
        ("[elastic]\nworkers = [1, 2]\n[batch]\nmicro = 2\nshares = [1, 1]", "shares cannot be combined"),
        ("[elastic]\nworkers = [1, 2]\n[mesh]\ndata = 2", "data in .mesh. cannot be combined"),
        ("[elastic]\nworkers = [1, 2]\n[mesh]\nmodel = 2", "model=2 cannot be combined"),
        ('[elastic]\nworkers = [1, 2]\n[batch]\nmicro = 2\n[optimizer]\nstate = "sharded"', "one worker keeps the whole state"),
        ("[batch]\nshares = [3, 0]", "shares has a value"),
        ("[batch]\nshares = [3, 1]\nmicro = 2", "do not add up"),
    ],
)
def test_plans_that_contradict_themselves_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "plan.toml").write_text(text)
    with pytest.raises(BridgeError, match=said):
        read_plan(tmp_path / "plan.toml")


def test_the_batches_of_each_worker(tmp_path: Path) -> None:
    plan = ParallelPlan(micro=12, elastic=(2, 6))
    assert [plan.step_batches(number) for number in (2, 3, 4, 6)] == [(6, 6), (4, 4, 4), (3, 3, 3, 3), (2,) * 6]
    with pytest.raises(BridgeError, match="another number of workers: 5 train"):
        plan.step_batches(5)
    (tmp_path / "plan.toml").write_text("[batch]\nshares = [3, 1]")
    uneven = read_plan(tmp_path / "plan.toml")
    assert (uneven.micro, uneven.step_batches(2)) == (4, (3, 1))
    assert NOT_PARALLEL.step_batches(2) == ()
    assert ParallelPlan(micro=6, elastic=(1, 10**12)).workers == [1, 2, 3, 6]
    for one in (plan, uneven):
        assert of_dict(json.loads(json.dumps(vars(one) | {"placement": vars(one.placement)}))) == one


def rows_of_steps(folder: Path) -> list[list[tuple[int, ...]]]:
    """Returns the batches of each step, each as its rows in their order; of a step that ran several times those of the last cluster."""
    began: dict[str, float] = {}
    noted: dict[int, dict[str, list[tuple[int, ...]]]] = {}
    for file in folder.iterdir():
        at, cluster = file.name.split()
        began[cluster] = min(began.get(cluster, float(at)), float(at))
        for line in file.read_text().splitlines():
            step, *rows = map(int, line.split())
            noted.setdefault(step, {}).setdefault(cluster, []).append(tuple(rows))
    return [sorted(noted[step][max(noted[step], key=lambda cluster: began[cluster])]) for step in sorted(noted)]


def saved_step(folder: Path) -> int:
    return max((int(file.stem.rpartition("-")[2]) for file in folder.glob("model.ckpt-*.index")), default=0)


def wait_for_step(folder: Path, step: int) -> None:
    wait_until(lambda: saved_step(folder) >= step)


def has_said(output: Path, words: str, times: int) -> bool:
    return output.read_text().count(words) == times


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def command(folder: Path, name: str, *options: object) -> list[str]:
    """Returns the command of a training of 60 steps into the folder ``name``."""
    flags = ["--path", "modern", "--elastic", "1:4", "--micro", "4"]
    return [*map(str, options), *flags, str(SCRIPT), str(folder / name), "60"]


@pytest.mark.slow
def test_a_training_that_loses_workers_and_gets_one_back_takes_the_same_rows(tmp_path: Path) -> None:
    """Four workers, two after SIGTERM, one after SIGKILL, and two after SIGUSR1 to the launcher."""
    unbroken = estimator_bridge_command(*command(tmp_path, "unbroken", "run"), cwd=tmp_path)
    assert unbroken.code == 0, unbroken.err[-3000:]

    started = [sys.executable, "-m", "estimator_bridge", *command(tmp_path, "broken", "launch"), "0.1"]
    with (tmp_path / "output").open("w") as output:
        launcher = subprocess.Popen(started, cwd=tmp_path, stdout=output, stderr=output)
    try:
        wait_for_step(tmp_path / "broken", 5)
        for number, (task, ending) in enumerate((("worker-1", signal.SIGTERM), ("worker-0", signal.SIGKILL)), 1):
            os.kill(int((tmp_path / "broken-pids" / task).read_text()), ending)
            wait_until(functools.partial(has_said, tmp_path / "output", "the training goes on", number))
            wait_for_step(tmp_path / "broken", saved_step(tmp_path / "broken") + 5)
        launcher.send_signal(signal.SIGUSR1)
        code = launcher.wait(300)
    finally:
        launcher.kill()
        launcher.wait()
    said = (tmp_path / "output").read_text()
    assert code == 0, said[-3000:]
    assert [line.split()[-2] for line in said.splitlines() if "the training goes on" in line] == ["2", "1", "2"]

    steps = rows_of_steps(tmp_path / "unbroken-rows")
    assert len(steps) == 60
    assert all([len(batch) for batch in batches] == [4] * 4 for batches in steps)
    assert rows_of_steps(tmp_path / "broken-rows") == steps
    once, again = (saved(tmp_path / name) for name in ("unbroken", "broken"))
    for name, value in once.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_machines_leave_and_come_back(tmp_path: Path) -> None:
    """A launcher for each of four machines: two train after SIGTERM to one, four when it is back, two when the chief's is killed."""
    unbroken = estimator_bridge_command(*command(tmp_path, "unbroken", "run"), cwd=tmp_path)
    assert unbroken.code == 0, unbroken.err[-3000:]
    hosts = ",".join(f"127.0.0.1:{port}" for port in free_ports(4))
    options = ["launch", "--hosts", hosts, "--worker", "3", "--rendezvous", "rendezvous"]
    launchers: dict[str, subprocess.Popen[bytes]] = {}

    def start(task: str) -> None:
        started = [*options, "--task", task, "--log-dir", f"logs-{task}"]
        with (tmp_path / f"{task}.out").open("a") as output:
            launchers[task] = subprocess.Popen(
                [sys.executable, "-m", "estimator_bridge", *command(tmp_path, "broken", *started), "0.1"],
                cwd=tmp_path,
                stdout=output,
                stderr=output,
            )

    def machines() -> list[int]:
        files = sorted((tmp_path / "rendezvous").glob("round-*.json"), key=lambda file: int(file.stem[6:]))
        return [len(json.loads(file.read_text())) for file in files]

    try:
        for task in ("chief:0", "worker:0", "worker:1", "worker:2"):
            start(task)
        wait_for_step(tmp_path / "broken", 5)
        launchers["worker:1"].terminate()
        wait_until(lambda: machines() == [4, 2])
        assert launchers["worker:1"].wait(100) == 143
        wait_for_step(tmp_path / "broken", saved_step(tmp_path / "broken") + 5)
        start("worker:1")
        wait_until(lambda: machines() == [4, 2, 4])
        wait_for_step(tmp_path / "broken", saved_step(tmp_path / "broken") + 5)
        launchers["chief:0"].kill()
        launchers["chief:0"].wait()
        codes = [launcher.wait(300) for task, launcher in launchers.items() if task != "chief:0"]
    finally:
        for launcher in launchers.values():
            launcher.kill()
            launcher.wait()
    assert codes == [0, 0, 0], "one of them stood by"
    assert machines() == [4, 2, 4, 2]
    assert rows_of_steps(tmp_path / "broken-rows") == rows_of_steps(tmp_path / "unbroken-rows")
    once, again = (saved(tmp_path / name) for name in ("unbroken", "broken"))
    for name, value in once.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_workers_with_unequal_shares_leave_what_one_worker_leaves(tmp_path: Path) -> None:
    """One of two workers takes three of four batches; sharded state stays whole in the checkpoint."""
    alone = estimator_bridge_command(*command(tmp_path, "alone", "run"), cwd=tmp_path)
    assert alone.code == 0, alone.err[-3000:]
    for name, more in (("uneven", ""), ("sharded", '[optimizer]\nstate = "sharded"\n')):
        (tmp_path / "plan.toml").write_text("[batch]\nshares = [3, 1]\n" + more)
        options = ["--worker", 1, "--path", "modern", "--plan", "plan.toml"]
        ended = estimator_bridge_command("launch", *options, SCRIPT, tmp_path / name, 60, cwd=tmp_path)
        assert ended.code == 0, ended.err[-3000:]
        assert rows_of_steps(tmp_path / f"{name}-rows") == rows_of_steps(tmp_path / "alone-rows")
        once, again = saved(tmp_path / "alone"), saved(tmp_path / name)
        for key, value in once.items():
            np.testing.assert_allclose(again[key], value, rtol=1e-5, atol=1e-6, err_msg=key)
