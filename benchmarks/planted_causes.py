"""Plants faults in rewrites, and counts how often ``compare OLD NEW`` notices them and names their cause first.

    python benchmarks/planted_causes.py --out causes.jsonl
    python benchmarks/planted_causes.py --out causes.jsonl --only epsilon --only faultless

Five pairs of tests/data/rewrites, each with SGD, Momentum, Adagrad, Adam and Ftrl in place of its own optimizer, are edited as ``FAULTS`` says.
Some faults need something in the right pair first, e.g. a schedule; that is planted in both scripts. ``faultless`` runs all right pairs. Each
line of the result is one comparison; ``run`` goes on where it was interrupted. A fault is noticed if the exit code is 1, and its cause is right
if the first cause that is named has one of the fault's words. A comparison takes 15 to 30 s.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "tests" / "data" / "rewrites"
TIMEOUT = 600  # seconds of a comparison

PAIRS = {
    "mlp": ("tf.train.AdamOptimizer(ARGS.rate)", "keras.optimizers.Adam(ARGS.rate, epsilon=ARGS.epsilon)"),
    "deepfm": ("tf.train.AdagradOptimizer(0.1)", "keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1, epsilon=1e-30)"),
    "conv": ("tf.train.MomentumOptimizer(0.05, 0.9)", "keras.optimizers.SGD(0.05, momentum=0.9)"),
    "lstm": ("tf.train.GradientDescentOptimizer(0.1)", "keras.optimizers.SGD(0.1)"),
    "towers": ("tf.train.AdamOptimizer(0.05)", "keras.optimizers.Adam(0.05, epsilon=1e-8)"),
}
"""Pair -> its own optimizer in both scripts."""

OPTIMIZERS = {
    "SGD": ("tf.train.GradientDescentOptimizer(RATE)", "keras.optimizers.SGD(RATE)"),
    "Momentum": ("tf.train.MomentumOptimizer(RATE, 0.9)", "keras.optimizers.SGD(RATE, momentum=0.9)"),
    "Adagrad": (
        "tf.train.AdagradOptimizer(RATE)",
        "keras.optimizers.Adagrad(RATE, initial_accumulator_value=0.1, epsilon=1e-30)",
    ),
    "Adam": ("tf.train.AdamOptimizer(RATE)", "keras.optimizers.Adam(RATE, epsilon=1e-8)"),
    "Ftrl": ("tf.train.FtrlOptimizer(RATE)", "keras.optimizers.Ftrl(RATE)"),
}
"""Optimizer -> right expressions in both scripts."""

Edit = tuple[str, str]
Edits = Mapping[str, tuple[Edit, ...]]
EVERY = "every pair"

L2_OLD = "loss = loss + 0.02 * sum(tf.nn.l2_loss(v) for v in tf.trainable_variables() if {!r} in v.name)\n    train_op ="
SCHEDULE_OLD = "tf.train.exponential_decay(0.05, tf.train.get_global_step(), 1, 0.7)"
SCHEDULE = "keras.optimizers.schedules.ExponentialDecay({}, 1, 0.7)"
L2_LOSS = (
    (
        "loss = loss_of(labels, model(images, training=True))",
        "loss = loss_of(labels, model(images, training=True)) + sum(model.losses)",
    ),
)
CLIPPED = (
    "optimizer = {}; pairs = optimizer.compute_gradients(loss); "
    "train_op = optimizer.apply_gradients([(tf.clip_by_norm(g, 0.01), v) for g, v in pairs], tf.train.get_global_step())"
)
DENSE = {
    "mlp": "keras.layers.Dense(2)",
    "conv": 'keras.layers.Dense(2, name="logits")',
    "lstm": "keras.layers.Dense(1)",
    "towers": 'keras.layers.Dense(1, name="out")',
}
LOSS = {"mlp": "(from_logits=True)", "conv": "(from_logits=True)"}


def dense(more: str) -> Edits:
    """Returns edits that give the last layer of each pair another argument."""
    return {pair: ((layer, f"{layer[:-1]}, {more})"),) for pair, layer in DENSE.items()}


DROPOUT: tuple[Edits, Edits] = (
    {
        "mlp": (),
        "conv": (("tf.layers.flatten(net)", "tf.layers.dropout(tf.layers.flatten(net), 0.3, training=training)"),),
        "towers": (),
    },
    {"mlp": (), "conv": (("keras.layers.Flatten(),", "keras.layers.Flatten(), keras.layers.Dropout(0.3),"),), "towers": ()},
)
NORM: tuple[Edits, Edits] = (
    {
        "mlp": (
            ("net = tf.layers.dropout(", "net = tf.layers.batch_normalization(net, momentum=0.9, training=training, name='norm')\n    net = tf.layers.dropout("),
            (".minimize(loss, tf.train.get_global_step())", ".minimize(loss, tf.train.get_global_step())\n    train_op = tf.group(train_op, tf.get_collection(tf.GraphKeys.UPDATE_OPS))"),
        ),
        "conv": (),
        "towers": (),
    },
    {"mlp": (("net = keras.layers.Dropout", "net = keras.layers.BatchNormalization(momentum=0.9)(net)\nnet = keras.layers.Dropout"),), "conv": (("momentum=ARGS.decay", "momentum=0.9"),), "towers": ()},
)  # fmt: skip
L2: tuple[Edits, Edits] = (
    {
        "mlp": (("train_op =", L2_OLD.format("logits/kernel")),),
        "lstm": (("train_op =", L2_OLD.format("out/kernel")),),
        "conv": (("with tf.control", L2_OLD.format("logits/kernel").removesuffix("train_op =") + "with tf.control"),),
    },
    {
        pair: ((DENSE[pair], f"{DENSE[pair][:-1]}, kernel_regularizer=keras.regularizers.L2(0.01))"), *more)
        for pair, more in {"mlp": (), "lstm": (), "conv": L2_LOSS}.items()
    },
)
NOTHING: tuple[Edits, Edits] = ({}, {})
NEVER_RIGHT = ("lstm", "Ftrl")
"""Pair and optimizer of which no rewrite is right: Keras has the forget_bias in a variable, and Ftrl gives it up."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault of a rewrite.

    Attributes:
        name: Name of the fault in the table.
        words: Words of which a right first cause has one.
        edits: Pair -> what is replaced in the new script. Under ``EVERY``, for all pairs.
        optimizers: Optimizers to which it applies.
        right: Edits of both scripts that make a right pair with what the fault needs.
        rate: Learning rate of both scripts, in a right pair.
    """

    name: str
    words: tuple[str, ...]
    edits: Edits
    optimizers: tuple[str, ...] = tuple(OPTIMIZERS)
    right: tuple[Edits, Edits] = NOTHING
    rate: tuple[str, str] = ("0.05", "0.05")

    @property
    def pairs(self) -> list[str]:
        """The pairs to which it applies."""
        return [pair for pair in PAIRS if pair in self.edits or EVERY in self.edits]


FAULTS = (
    Fault("Adam's epsilon 1e-3 for 1e-8", ("epsilon",), {EVERY: (("epsilon=1e-8", "epsilon=1e-3"),)}, ("Adam",)),
    Fault("Adagrad's epsilon 0.1 for none", ("epsilon",), {EVERY: (("epsilon=1e-30", "epsilon=0.1"),)}, ("Adagrad",)),
    Fault("beta_2 0.99 for 0.999", ("beta",), {EVERY: (("epsilon=1e-8", "epsilon=1e-8, beta_2=0.99"),)}, ("Adam",)),
    Fault("Adagrad starts at 0.01", ("accumulator", "initial"), {EVERY: (("value=0.1", "value=0.01"),)}, ("Adagrad",)),
    Fault("Ftrl starts at 1", ("accumulator", "initial"), {EVERY: (("Ftrl(0.05", "Ftrl(0.05, initial_accumulator_value=1.0"),)}, ("Ftrl",)),
    Fault("learning rate doubled", ("learning rate", "rate"), {EVERY: (("(0.05", "(0.1"),)}),
    Fault("schedule one step ahead", ("schedule", "rate"), {EVERY: (("Decay(0.05", "Decay(0.035"),)}, rate=(SCHEDULE_OLD, SCHEDULE.format(0.05))),
    Fault("schedule forgotten", ("schedule", "rate"), {EVERY: ((SCHEDULE.format(0.05), "0.05"),)}, rate=(SCHEDULE_OLD, SCHEDULE.format(0.05))),
    Fault("momentum forgotten", ("momentum",), {EVERY: ((", momentum=0.9)", ")"),)}, ("Momentum",)),
    Fault("Nesterov's momentum", ("nesterov", "momentum"), {EVERY: ((", momentum=0.9)", ", momentum=0.9, nesterov=True)"),)}, ("Momentum",)),
    Fault(
        "clipping forgotten", ("clip",), dict.fromkeys(("mlp", "lstm", "deepfm"), ((", clipnorm=0.01", ""),)),
        right=(
            {pair: (("train_op = OPTIMIZER.minimize(loss, tf.train.get_global_step())", CLIPPED.format("OPTIMIZER")),) for pair in ("mlp", "lstm", "deepfm")},
            dict.fromkeys(("mlp", "lstm", "deepfm"), (("OPTIMIZER", "OPTIMIZER, clipnorm=0.01"),)),
        ),
    ),
    Fault("L2 forgotten", ("L2", "regulariz"), {**dict.fromkeys(L2[0], ((", kernel_regularizer=keras.regularizers.L2(0.01)", ""),)), "deepfm": (("ARGS.l2 * (", "0 * ("),)}, right=L2),
    Fault("L2 twice as large", ("L2", "regulariz"), {**dict.fromkeys(L2[0], (("L2(0.01)", "L2(0.02)"),)), "deepfm": (("ARGS.l2 * (", "2 * ARGS.l2 * ("),)}, right=L2),
    Fault("L2 that the old script never had", ("L2", "regulariz"), {pair: (*dense("kernel_regularizer=keras.regularizers.L2(0.01)")[pair], *more) for pair, more in {"mlp": (), "lstm": (), "conv": L2_LOSS}.items()}),
    Fault(
        "sum in place of mean", ("sum", "scale", "mean"),
        {
            "mlp": (("(from_logits=True)", '(from_logits=True, reduction="sum")'),),
            "conv": (("(from_logits=True)", '(from_logits=True, reduction="sum")'),),
            "lstm": (("ARGS.loss", 'keras.losses.MeanSquaredError(reduction="sum")', ),),
            "deepfm": (("loss = tf.reduce_mean(", "loss = tf.reduce_sum("),),
            "towers": (("loss = tf.reduce_mean(", "loss = tf.reduce_sum("),),
        },
    ),
    Fault("dropout forgotten", ("dropout",), {"mlp": (("Dropout(ARGS.dropout)", "Dropout(0.0)"),), "conv": (("Dropout(0.3)", "Dropout(0.0)"),), "towers": (("Dropout(0.25)", "Dropout(0.0)"),)}, right=DROPOUT),
    Fault("share kept in place of dropped", ("dropout",), {"mlp": (("Dropout(ARGS.dropout)", "Dropout(0.7)"),), "conv": (("Dropout(0.3)", "Dropout(0.7)"),), "towers": (("Dropout(0.25)", "Dropout(0.75)"),)}, right=DROPOUT),
    Fault("momentum of batch norm 0.99", ("moving", "batch norm", "momentum"), {pair: (("momentum=0.9)" if pair == "mlp" else "momentum=0.9, name", "momentum=0.99)" if pair == "mlp" else "momentum=0.99, name"),) for pair in NORM[0]}, ("SGD", "Adagrad", "Adam", "Ftrl"), NORM),
    Fault(
        "batch norm in inference mode", ("moving", "batch norm"),
        {
            "mlp": (("BatchNormalization(momentum=0.9)(net)", "BatchNormalization(momentum=0.9)(net, training=False)"),),
            "conv": (("model(images, training=True)", "model(images, training=False)"),),
            "towers": (('momentum=0.9, name="norm")', 'momentum=0.9, name="norm", trainable=False)'),),
        },
        ("SGD", "Adagrad", "Adam", "Ftrl"), NORM,
    ),
    Fault("forget_bias in a variable of Ftrl", ("Ftrl",), {"lstm": ()}, ("Ftrl",)),
    Fault("bias left out", ("variable", "bias"), dense("use_bias=False")),
    Fault("last layer frozen", ("frozen", "trained", "trainable"), dense("trainable=False")),
    Fault("another activation", ("activation", "recurrent"), {"mlp": (('"tanh"', '"relu"'),), "conv": (('"tanh"', '"relu"'),), "towers": (('"tanh"', '"relu"'),), "lstm": (("LSTM(7)", 'LSTM(7, activation="relu")'),)}),
    Fault("activation forgotten", ("activation",), {"mlp": (('"tanh"', "None"),), "conv": (('keras.layers.Activation("tanh"),', ""),), "towers": (('"tanh"', "None"),)}),
    Fault(
        "inputs in reverse order", ("order of elements", "recurrent"),
        {
            "mlp": (('"tanh")(inputs)', '"tanh")(inputs[:, ::-1])'),),
            "conv": (("model(images, training=True)", "model(images[:, ::-1], training=True)"),),
            "lstm": (("LSTM(7)(words)", "LSTM(7)(words[:, ::-1])"),),
            "towers": (('features["dense"], training', 'features["dense"][:, ::-1], training'),),
        },
    ),
    Fault(
        "probabilities given to a loss of logits", ("outputs that the loss gets",),
        {
            "mlp": (("Dense(2)(net)", 'Dense(2, "softmax")(net)'),),
            "conv": (("Dense(2, name", 'Dense(2, "softmax", name'),),
            "deepfm": (("return self.bias + first + second", "return tf.sigmoid(self.bias + first + second)"),),
        },
    ),
    Fault("second-order term doubled", ("forward pass",), {"deepfm": (("0.5 * tf.reduce_sum(", "tf.reduce_sum("),)}),
    Fault(
        "labels broadcast to a matrix", ("broadcast", "shape"),
        {
            "deepfm": (("logits=logits, labels=labels", "logits=logits + 0 * labels[:, None], labels=labels[:, None] + 0 * logits"),),
            "towers": (("tf.square(labels - self", "tf.square(labels[:, None] - self"),),
            "lstm": (("ARGS.loss", "lambda y, p: tf.reduce_mean((y - p[:, 0]) ** 2)"),),
        },
    ),
    Fault("one epoch too few", ("step", "epoch"), {"mlp": (("range(2)", "range(1)"),), "conv": (("range(2)", "range(1)"),), **dict.fromkeys(("lstm", "deepfm", "towers"), (("epochs=2", "epochs=1"),))}),
    Fault("rows in another order", ("order", "shuffle"), dict.fromkeys(("conv", "deepfm", "lstm", "towers"), (("    return tf.data", "    return OTHER_ORDER"), (").batch(", ").shuffle(99).batch("), ("OTHER_ORDER", "tf.data")))),
    Fault("inputs twice as large", ("batch", "input", "values"), {"conv": (("random.rand(96, 8, 8, 1)", "2 * random.rand(96, 8, 8, 1)"),), "deepfm": (("random.rand(200, 4)", "2 * random.rand(200, 4)"),), "towers": (("random.randn(168, 5)", "2 * random.randn(168, 5)"),)}),
    Fault("loss of half the size", ("scale", "size", "loss"), {"deepfm": (("return logits, loss +", "return logits, 0.5 * loss +"),), "towers": (("loss = tf.reduce_mean(tf.square(", "loss = 0.5 * tf.reduce_mean(tf.square("),), "conv": (("loss = loss_of(", "loss = 0.5 * loss_of("),)}),
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Case:
    """A comparison to run; ``fault`` is None for a right pair."""

    pair: str
    optimizer: str
    fault: Fault | None

    @property
    def key(self) -> str:
        """Name of the case."""
        return f"{self.fault.name if self.fault else 'faultless'} / {self.pair} / {self.optimizer}"


def main() -> None:
    """Runs the comparisons that a file of results lacks, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="file of results, one JSON object a line")
    parser.add_argument("--only", action="append", default=[], help="part of a fault's name, or 'faultless'")
    parser.add_argument("--pair", action="append", default=[], choices=PAIRS)
    parser.add_argument("--each", action="store_true", help="each fault with each of its optimizers, not with one a pair")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    done = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    chosen = [case for case in cases(given.each) if any(part in case.key for part in given.only or [""])]
    left = [case for case in chosen if case.key not in {one["case"] for one in done} and case.pair in (given.pair or PAIRS)]
    with concurrent.futures.ThreadPoolExecutor(given.workers) as pool, given.out.open("a") as out:
        for result in pool.map(run, left):
            done.append(result)
            print(json.dumps(result), file=out, flush=True)
            print(line_of(result), flush=True)
    show(done)


def cases(each: bool) -> Iterator[Case]:
    """Yields the cases; each fault goes through its optimizers from pair to pair."""
    for pair, optimizer in itertools.product(PAIRS, OPTIMIZERS):
        if (pair, optimizer) != NEVER_RIGHT:
            yield Case(pair, optimizer, None)
    for place, fault in enumerate(FAULTS):
        for number, pair in enumerate(fault.pairs):
            turn = [fault.optimizers[(place + number) % len(fault.optimizers)]]
            for optimizer in fault.optimizers if each else turn:
                yield Case(pair, optimizer, fault)


def scripts(case: Case) -> tuple[str, str]:
    """Returns the text of both scripts.

    Raises:
        LookupError: A text that an edit replaces does not occur.
    """
    fault = case.fault
    texts = []
    for side, name in enumerate(("old", "new")):
        text = (DATA / f"{case.pair}_{name}.py").read_text(encoding="utf-8")
        text = edited(text, ((PAIRS[case.pair][side], "OPTIMIZER"),))
        expression = OPTIMIZERS[case.optimizer][side].replace("RATE", fault.rate[side] if fault else "0.05")
        for old, new in fault.right[side].get(case.pair, ()) if fault else ():
            if (old, side) == ("OPTIMIZER", 1):  # one more argument
                expression = f"{expression[:-1]}{new.removeprefix('OPTIMIZER')})"
            else:
                text = edited(text, ((old, new),))
        text = text.replace("OPTIMIZER", expression)
        if fault and side:
            text = edited(text, fault.edits.get(case.pair, fault.edits.get(EVERY, ())))
        texts.append(text)
    return texts[0], texts[1]


def edited(text: str, edits: tuple[Edit, ...]) -> str:
    """Returns a text with replacements, each of which it must need."""
    for old, new in edits:
        if old not in text:
            raise LookupError(f"{old!r} does not occur in:\n{text}")
        text = text.replace(old, new, 1)
    return text


def run(case: Case) -> dict[str, Any]:
    """Runs one comparison."""
    with tempfile.TemporaryDirectory() as folder:
        names = [Path(folder, name) for name in ("old.py", "new.py")]
        for path, text in zip(names, scripts(case), strict=True):
            path.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "estimator_bridge", "compare", "--format", "json", "--out", "report", *map(str, names)]
        ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        report = {"verdict": ran.stderr[-300:]}
    cause = report.get("cause") or {"name": "", "seen": ""}
    found = [finding.get("message", "") for finding in report.get("findings", [])]
    return {
        "case": case.key,
        "fault": case.fault.name if case.fault else "",
        "words": case.fault.words if case.fault else (),
        "exit_code": ran.returncode,
        "verdict": report.get("verdict"),
        "cause": f"{cause['name']}: {cause['seen']}".removesuffix(": "),
        "finding": found[0] if found else "",
    }


def is_noticed(result: Mapping[str, Any]) -> bool:
    """Returns True if the verdict is right."""
    return bool(result["exit_code"] == (1 if result["fault"] else 0))


def is_right(result: Mapping[str, Any]) -> bool:
    """Returns True if the first cause has one of the fault's words."""
    return is_noticed(result) and any(word.lower() in result["cause"].lower() for word in result["words"])


def line_of(result: Mapping[str, Any]) -> str:
    """Returns a result as a line of the table."""
    verdict = "" if is_noticed(result) else "WRONG VERDICT"
    return f"{result['case']:60} {result['exit_code']} {verdict:13} {result['cause'] or '-- ' + result['finding']}"[:220]


def show(results: list[dict[str, Any]]) -> None:
    """Prints the table and the sums."""
    for result in sorted(results, key=lambda one: str(one["case"])):
        print(line_of(result))
    faults = [result for result in results if result["fault"]]
    right = [result for result in results if not result["fault"]]
    print(f"faults noticed: {sum(map(is_noticed, faults))} of {len(faults)}; first cause right: {sum(map(is_right, faults))}")
    print(f"right pairs called equal: {sum(map(is_noticed, right))} of {len(right)}")


if __name__ == "__main__":
    main()
