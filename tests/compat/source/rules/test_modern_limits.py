"""Uses that only the modern path refuses, judged by their source."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.source.reached import ReachedCode
from estimator_bridge.compat.source.reading import read_source
from estimator_bridge.compat.source.rules.modern_limits import calls_an_estimator, judge_for_micro_batches, judge_for_modern
from estimator_bridge.compat.source.verdicts import Verdict

TF = "import tensorflow as tf\n"
FLAG = "flags = tf.app.flags\nFLAGS = flags.FLAGS\n"
HOOK = "tf.train.ProfilerHook(save_steps=1)"
REFUSED = {
    f"{TF}tf.estimator.RunConfig(device_fn=lambda op: '/cpu:0')": "device_fn=",
    f"{TF}place = tf.train.replica_device_setter(2)\ntf.estimator.RunConfig(device_fn=place)": "device_fn=",
    f"{TF}tf.contrib.learn.RunConfig(master='grpc://a:1')": "master=",
    f"{TF}tf.contrib.distribute.DistributeConfig(remote_cluster={{'worker': ['a:1']}})": "remote_cluster=",
    f"{TF}tf.ConfigProto(cluster_def=tf.train.ClusterDef())": "cluster_def=",
    f"{TF}tf.train.SessionRunArgs(loss, options=tf.RunOptions(trace_level=3))": "options=",
    f"{TF}tf.contrib.lookup.MutableHashTable(tf.string, tf.int64, 0)": "tf.contrib.lookup.MutableHashTable",
    f"{TF}tf.contrib.learn.DNNClassifier([1], [])": "tf.contrib.learn.DNNClassifier",
    f"{TF}tf.contrib.learn.SKCompat(1)": "tf.contrib.learn.SKCompat",
    f"{TF}def f():\n    if True:\n        {HOOK}": "tf.train.ProfilerHook",
    f"{TF}def f(mode):\n    if mode == tf.estimator.ModeKeys.TRAIN:\n        {HOOK}": "tf.train.ProfilerHook",
    f"{TF}{FLAG}flags.DEFINE_bool('profile', True, '')\nif FLAGS.profile:\n    {HOOK}": "tf.train.ProfilerHook",
}
TAKEN = [
    f"{TF}tf.estimator.RunConfig(device_fn=None, train_distribute=tf.distribute.MirroredStrategy())",
    f"{TF}{FLAG}tf.contrib.tpu.RunConfig(master=FLAGS.master)",
    f"{TF}tf.contrib.learn.RunConfig(master='')",
    f"{TF}def config(place):\n    return tf.estimator.RunConfig(device_fn=place)",
    f"{TF}tf.estimator.RunConfig(eval_distribute=tf.distribute.MirroredStrategy())",
    f"{TF}tf.contrib.learn.learn_runner.run(experiment_fn, 'out')",
    f"{TF}tf.contrib.learn.Experiment(estimator, train_input_fn, eval_input_fn)",
    f"{TF}tf.train.SessionRunArgs(loss, options=None)",
    f"{TF}tf.contrib.lookup.HashTable(initializer, 0)",
    f"{TF}tf.contrib.learn.datasets.load_iris()",
]
IN_AN_IF = [
    f"{TF}{FLAG}flags.DEFINE_bool('profile', False, '')\nif FLAGS.profile:\n    {HOOK}",
    f"{TF}{FLAG}flags.DEFINE_integer('profile_steps', None, '')\nif FLAGS.profile_steps:\n    {HOOK}",
    f"{TF}parser.add_argument('--profile-steps', type=int)\nif args.profile_steps > 0:\n    {HOOK}",
    f"{TF}def train(params):\n    if params['profile']:\n        {HOOK}",
]


@pytest.mark.parametrize(("text", "symbol"), REFUSED.items())
def test_what_the_modern_path_refuses(text: str, symbol: str) -> None:
    findings = list(judge_for_modern(read_source(text.encode(), "train.py")))
    assert [(one.symbol, one.verdict) for one in findings] == [(symbol, Verdict.HUMAN)]


@pytest.mark.parametrize("text", TAKEN)
def test_what_the_modern_path_takes(text: str) -> None:
    assert not list(judge_for_modern(read_source(text.encode(), "train.py")))


@pytest.mark.parametrize("text", IN_AN_IF)
def test_what_a_setting_leaves_out_by_default(text: str) -> None:
    (finding,) = judge_for_modern(read_source(text.encode(), "train.py"))
    assert finding.verdict is Verdict.LOOK
    assert "only if" in finding.message


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("estimator = tf.estimator.Estimator(model_fn)\nestimator.train(input_fn)", True),
        ("def main(argv):\n    tf.estimator.Estimator(model_fn).train(input_fn)\ntf.app.run()", True),
        (
            "def main(argv):\n    tf.estimator.Estimator(model_fn).train(input_fn)\nif __name__ == '__main__':\n    main([])",
            True,
        ),
        ("tf.contrib.learn.learn_runner.run(lambda config: tf.estimator.Estimator(model_fn), 'out')", True),
        ("def train():\n    tf.estimator.Estimator(model_fn).train(input_fn)", False),
        ("class Job(object):\n    def start(self):\n        tf.estimator.Estimator(model_fn).evaluate(input_fn)", False),
        ("tf.estimator.Estimator(model_fn)", False),
        ("with tf.Session() as session:\n    model.train(session)", False),
    ],
)
def test_whether_an_estimator_is_called(text: str, calls: bool) -> None:
    source = read_source(f"{TF}{text}".encode(), "train.py")
    assert calls_an_estimator([source], ReachedCode([source])) is calls


@pytest.mark.parametrize("name", ["layers.batch_normalization", "keras.layers.BatchNormalization", "contrib.layers.batch_norm"])
def test_micro_batches_point_out_a_batch_norm(name: str) -> None:
    (finding,) = judge_for_micro_batches(read_source(f"{TF}net = tf.{name}(net)".encode(), "train.py"))
    assert (finding.symbol, finding.line, finding.verdict) == (f"tf.{name}", 2, Verdict.LOOK)


def test_micro_batches_take_a_layer_norm() -> None:
    assert not list(judge_for_micro_batches(read_source(f"{TF}net = tf.contrib.layers.layer_norm(net)".encode(), "train.py")))
