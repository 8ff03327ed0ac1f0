"""Cases of tf.contrib.learn, with Estimators of tf.estimator."""

import functools
import json
import os
import tempfile

import tensorflow as tf
from tensorflow.contrib.learn.python.learn.estimators import constants, metric_key, model_fn, run_config
from tensorflow.contrib.learn.python.learn.utils import input_fn_utils, saved_model_export_utils

learn = tf.contrib.learn


def _model_fn(features, labels, mode):
    weight = tf.get_variable("weight", initializer=[[0.5], [2.0]])
    y = tf.matmul(features["x"], weight)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        return tf.estimator.EstimatorSpec(mode, {"y": y}, export_outputs=outputs)
    loss = tf.reduce_mean((y - labels) ** 2)
    step = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step, eval_metric_ops={"mean": tf.metrics.mean(y)})


def _input_fn():
    return tf.data.Dataset.from_tensors(({"x": [[1.0, 2.0], [3.0, 4.0]]}, [[1.0], [2.0]])).repeat()


def _receiver():
    x = tf.placeholder(tf.float32, [None, 2], "x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})


def _config(**options):
    return learn.RunConfig(model_dir=tempfile.mkdtemp(), save_checkpoints_steps=2, **options)


class _Evaluations(tf.train.SessionRunHook):
    """The global steps at which evaluations begin."""

    def __init__(self):
        self.steps = []

    def after_create_session(self, session, coord):
        self.steps.append(int(session.run(tf.train.get_global_step())))


def _experiment(config=None, **options):
    config = config or _config()
    evaluations = _Evaluations()
    options = dict({"train_steps": 6, "eval_steps": 1, "eval_hooks": [evaluations], "check_interval_secs": -1}, **options)
    estimator = tf.estimator.Estimator(_model_fn, config=config)
    experiment = learn.Experiment(estimator, _input_fn, _input_fn, eval_delay_secs=0, **options)
    return experiment, evaluations.steps


def _refused(error, call):
    try:
        call()
    except error as raised:
        return type(raised).__name__
    return "nothing raised"


def _folders(experiment):
    base = os.path.join(experiment.estimator.model_dir, "export")
    return {name: len(os.listdir(os.path.join(base, name))) for name in sorted(os.listdir(base))}


def train_and_evaluate():
    experiment, evaluated = _experiment(export_strategies=learn.make_export_strategy(_receiver))
    result, exports = experiment.train_and_evaluate()
    again, every_four = _experiment(min_eval_frequency=4)
    without, only_last = _experiment(min_eval_frequency=0)
    return [
        result,
        len(exports),
        _folders(experiment),
        evaluated,
        [again.train_and_evaluate()[1], every_four],
        [without.train_and_evaluate()[0]["global_step"], only_last],
        [experiment.train_steps, experiment.eval_steps, experiment.eval_metrics],
    ]


def checkpoint_and_export():
    seen = []

    def export_fn(estimator, path, checkpoint_path, eval_result):
        seen.append([os.path.basename(checkpoint_path), int(eval_result["global_step"]), path.decode().split("/")[-2:]])
        return "exported %d" % len(seen)

    strategy = learn.ExportStrategy("mine", export_fn)
    experiment, evaluated = _experiment(checkpoint_and_export=True, export_strategies=[strategy], train_steps=5)
    result, exports = experiment.train_and_evaluate()
    return [result["global_step"], exports, sorted(set(map(str, seen))), sorted(set(evaluated))]


def train_then_evaluate():
    experiment, evaluated = _experiment(train_steps=3)
    experiment.extend_train_hooks([tf.train.StopAtStepHook(last_step=2)])
    experiment.train(delay_secs=0)
    return [experiment.evaluate(delay_secs=0), experiment.evaluate(name="named")["global_step"], evaluated]


def continuous_train_and_eval():
    tenths, evaluated = _experiment(train_steps=20)
    result, exports = tenths.continuous_train_and_eval()
    limited, three = _experiment(train_steps=20, train_steps_per_iteration=3)
    seen = []

    def goes_on(eval_results, checkpoint_path):
        seen.append([eval_results and eval_results["global_step"], checkpoint_path and os.path.basename(checkpoint_path)])
        return not eval_results or eval_results["global_step"] < 6

    limited.continuous_train_and_eval(goes_on)
    return [result, exports, evaluated, three, seen]


def continuous_eval():
    experiment, evaluated = _experiment(train_steps=3, continuous_eval_throttle_secs=0)
    experiment.train(0)
    experiment.continuous_eval()
    experiment.continuous_eval_on_train_data(throttle_delay_secs=0, continuous_eval_predicate_fn=lambda results: not results)
    return evaluated


def test():
    experiment, evaluated = _experiment(export_strategies=[learn.make_export_strategy(_receiver, exports_to_keep=1)])
    return [experiment.test(), _folders(experiment), evaluated]


def export_strategies():
    calls = []
    plain = learn.ExportStrategy("plain", lambda estimator, path: calls.append(path) or "plain")
    stripped = learn.ExportStrategy("stripped", lambda estimator, path, strip_default_attrs: strip_default_attrs, True)
    experiment, _ = _experiment(export_strategies=plain)
    old = experiment.reset_export_strategies([stripped])
    made = learn.make_export_strategy(_receiver, strip_default_attrs=True)
    bad = learn.ExportStrategy("bad", lambda estimator, path, eval_result: None)
    return [
        [strategy.name for strategy in old],
        plain.export(None, "where"),
        stripped.export(None, "where", "checkpoint", {"loss": 1.0}),
        [made.name, made.strip_default_attrs],
        _refused(ValueError, lambda: bad.export(None, "where")),
        _refused(ValueError, lambda: experiment.reset_export_strategies(["no strategy"])),
        _refused(ValueError, lambda: learn.make_export_strategy(_receiver, "key").export(experiment.estimator, "where")),
    ]


def garbage_collect_exports():
    base = tempfile.mkdtemp()
    for name in ("100", "1600000000", "1500000000", "1700000000", "temp-1", "other"):
        os.mkdir(os.path.join(base, name))
    saved_model_export_utils.garbage_collect_exports(base, None)
    saved_model_export_utils.garbage_collect_exports(base, 2)
    return sorted(os.listdir(base))


def refused():
    estimator = tf.estimator.Estimator(_model_fn, model_dir=tempfile.mkdtemp())
    make = functools.partial(learn.Experiment, estimator, _input_fn, _input_fn)
    return [
        _refused(ValueError, lambda: make(eval_metrics={"a": None})),
        _refused(ValueError, lambda: make(train_steps_per_iteration=1.5)),
        _refused(ValueError, lambda: make(export_strategies=[1])),
        _refused(ValueError, lambda: learn.Experiment("no estimator", _input_fn, _input_fn)),
        _refused(ValueError, lambda: make().continuous_train_and_eval("no function")),
    ]


def learn_runner():
    made = []

    def by_config(run_config, hparams):
        made.append([run_config.save_checkpoints_steps, hparams])
        return _experiment(run_config, train_steps=2)[0]

    def by_folder(output_dir):
        return _experiment(_config().replace(model_dir=output_dir), train_steps=3)[0]

    def with_another_config(run_config, hparams):
        return _experiment()[0]

    run = learn.learn_runner.run
    return [
        run(by_config, run_config=_config())[0],
        made,
        run(by_config, run_config=_config(), schedule="test")["global_step"],
        run(by_folder, tempfile.mkdtemp())[0]["global_step"],
        _refused(ValueError, lambda: run(by_config)),
        _refused(ValueError, lambda: run(by_config, "folder", run_config=_config())),
        _refused(ValueError, lambda: run(by_config, run_config=learn.RunConfig())),
        _refused(ValueError, lambda: run(by_config, run_config=tf.estimator.RunConfig("folder"))),
        _refused(ValueError, lambda: run(by_config, run_config=_config(), schedule="nothing")),
        _refused(RuntimeError, lambda: run(with_another_config, run_config=_config())),
        _refused(TypeError, lambda: run("no function", "folder")),
        _refused(TypeError, lambda: run(lambda output_dir: "no experiment", "folder")),
    ]


def tune():
    class Tuner(object):
        def __init__(self):
            self.trials, self.results = 2, []

        def next_trial(self):
            self.trials -= 1
            return self.trials >= 0

        def run_experiment(self, experiment_fn):
            experiment = experiment_fn(run_config=_config(), hparams=tf.contrib.training.HParams(steps=2))
            self.results.append(experiment.test()["global_step"])

    tuner = Tuner()
    learn.learn_runner.tune(lambda run_config, hparams: _experiment(run_config, train_steps=hparams.steps)[0], tuner)
    return tuner.results


def schedules():
    """What each task of a cluster does unless told."""
    done = []
    for task_type in ("master", "ps", "worker"):
        cluster = {"master": ["m:1"], "ps": ["p:1"], "worker": ["w:1", "w:2"]}
        with _environment({"cluster": cluster, "task": {"type": task_type, "index": 0}, "environment": "cloud"}):
            config = _config()

            def experiment_fn(run_config, hparams):
                experiment = _experiment(run_config)[0]
                for name in ("train_and_evaluate", "train", "run_std_server"):
                    setattr(experiment, name, functools.partial(done.append, name))
                return experiment

            learn.learn_runner.run(experiment_fn, run_config=config)
    return done


class _environment(object):
    def __init__(self, tf_config):
        self._text = json.dumps(tf_config)

    def __enter__(self):
        os.environ["TF_CONFIG"] = self._text

    def __exit__(self, *error):
        del os.environ["TF_CONFIG"]


_CLUSTER = {"ps": ["p:1", "p:2"], "worker": ["w:1", "w:2", "w:3"]}
_CLOUD = {"master": ["m:1"], "ps": ["p:1"], "worker": ["w:1"]}
_ENVIRONMENTS = [
    {},
    {"task": {"type": "worker", "index": 1}},
    {"task": {"index": "1"}},
    {"cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0}},
    {"cluster": _CLUSTER},
    {"cluster": _CLUSTER, "task": {"type": "worker", "index": 0}},
    {"cluster": _CLUSTER, "task": {"type": "worker", "index": 2}, "environment": "google"},
    {"cluster": _CLUSTER, "task": {"type": "ps", "index": 1}, "environment": "cloud"},
    {"cluster": _CLOUD, "task": {"type": "master", "index": 0}, "environment": "cloud"},
    {"cluster": _CLOUD, "task": {"type": "worker", "index": 0}, "environment": "cloud"},
    {"cluster": _CLOUD, "task": {"type": "master", "index": 0}},
    {"model_dir": "there"},
]
_FIELDS = [
    "cluster_spec",
    "environment",
    "evaluation_master",
    "is_chief",
    "keep_checkpoint_every_n_hours",
    "keep_checkpoint_max",
    "log_step_count_steps",
    "master",
    "model_dir",
    "num_ps_replicas",
    "num_worker_replicas",
    "save_checkpoints_secs",
    "save_checkpoints_steps",
    "save_summary_steps",
    "session_config",
    "session_creation_timeout_secs",
    "task_id",
    "task_type",
    "tf_random_seed",
    "train_distribute",
    "eval_distribute",
    "device_fn",
]


def _told(config):
    values = {name: getattr(config, name) for name in _FIELDS}
    values["cluster_spec"] = config.cluster_spec.as_dict()
    return values


def run_config_in_environments():
    told = []
    for environment in _ENVIRONMENTS:
        with _environment(environment):
            told.append([_told(learn.RunConfig()), learn.RunConfig.get_task_id()])
    for task in ({"type": "chief", "index": 0}, {"type": "worker", "index": 3}):
        with _environment({"cluster": _CLUSTER, "task": task}):
            told.append(_refused(ValueError, learn.RunConfig))
    with _environment({"model_dir": "there"}):
        told.append(_refused(ValueError, lambda: learn.RunConfig(model_dir="elsewhere")))
    return told


def run_config_fields():
    config = learn.RunConfig(
        master="grpc://m:1",
        num_cores=3,
        log_device_placement=True,
        gpu_memory_fraction=0.5,
        tf_random_seed=7,
        save_summary_steps=3,
        save_checkpoints_steps=11,
        keep_checkpoint_max=2,
        keep_checkpoint_every_n_hours=4,
        log_step_count_steps=5,
        protocol="grpc",
        evaluation_master="grpc://e:1",
        model_dir="somewhere",
        session_creation_timeout_secs=9,
    )
    with _environment({"cluster": _CLUSTER, "task": {"type": "worker", "index": 1}}):
        asked = learn.RunConfig(master="local", evaluation_master="other")
    return [
        _told(config),
        json.loads(json.dumps(str(config.tf_config))),
        _told(learn.RunConfig(save_checkpoints_secs=33)),
        _told(learn.RunConfig(save_checkpoints_secs=None)),
        _told(asked),
        _told(config.replace(model_dir="new", tf_random_seed=8)),
        [config.uid() == config.replace(tf_random_seed=8).uid(), config.uid() == config.replace(model_dir="new").uid()],
        [
            config.uid(["model_dir"]) == config.replace(model_dir="new").uid(["model_dir"]),
            isinstance(config, tf.estimator.RunConfig),
        ],
        [learn.TaskType.MASTER, learn.TaskType.PS, learn.TaskType.WORKER, run_config.Environment.CLOUD, run_config.TaskType.PS],
    ]


def metric_spec():
    labels, predictions, weights = tf.constant([1.0, 2.0]), tf.constant([1.0, 4.0]), tf.constant([1.0, 3.0])
    given = [{"w": weights}, {"l": labels, "m": weights}, {"p": predictions, "q": weights}]

    def canonical(labels, predictions, weights=None):
        return labels - predictions * (1.0 if weights is None else weights)

    def renamed(logit, target, weight=None):
        return target - logit * (1.0 if weight is None else weight)

    def positional(target, guess):
        return target - guess

    def after(guess, target):
        return target - guess

    def alone(prediction):
        return prediction * 2.0

    def bare(guess):
        return guess * 3.0

    single = [{}, {"l": labels}, predictions]
    one = learn.MetricSpec(canonical, "p", "l", "w")
    return [
        one.create_metric_ops(*given),
        learn.MetricSpec(renamed, "q", "m").create_metric_ops(*given),
        learn.MetricSpec(renamed, weight_key="w").create_metric_ops({"w": weights}, labels, predictions),
        [learn.MetricSpec(function).create_metric_ops(*single) for function in (canonical, positional, after, alone, bare)],
        learn.MetricSpec(functools.partial(canonical, weights=weights)).create_metric_ops(*single),
        str(one),
        [one.prediction_key, one.label_key, one.weight_key, one.metric_fn(labels=labels, predictions=predictions)],
        _refused(ValueError, lambda: learn.MetricSpec(bare, label_key="l")),
        _refused(ValueError, lambda: learn.MetricSpec(positional, weight_key="l")),
        _refused(ValueError, lambda: learn.MetricSpec(lambda labels, targets: 0)),
        _refused(ValueError, lambda: learn.MetricSpec(canonical).create_metric_ops(*given)),
        _refused(ValueError, lambda: learn.MetricSpec(canonical, "p", "l").create_metric_ops({}, labels, predictions)),
        _refused(KeyError, lambda: learn.MetricSpec(canonical, "x", "l").create_metric_ops(*given)),
    ]


def input_fns():
    parsing = learn.build_parsing_serving_input_fn({"x": tf.FixedLenFeature([2], tf.float32)}, 3)()
    default = input_fn_utils.build_default_serving_input_fn({"x": tf.constant([[1.0, 2.0]])})()
    return [
        list(learn.InputFnOps._fields),
        [parsing.features["x"].shape.as_list(), parsing.labels, parsing.default_inputs["examples"].name],
        [str(default.features["x"].shape), default.default_inputs["x"].name, default.features["x"].dtype.name],
    ]


def _values(holder):
    return {name: value for name, value in vars(holder).items() if name.isupper()}


def constants_of_learn():
    kinds = (learn.ProblemType, learn.PredictionKey, metric_key.MetricKey)
    return [[_values(holder) for holder in kinds], constants.ProblemType is learn.ProblemType]


def modes_of_learn():
    return [
        [_values(learn.ModeKeys), model_fn.ModeKeys is learn.ModeKeys],
        [learn.ModeKeys.validate("infer"), _refused(ValueError, lambda: learn.ModeKeys.validate("predict"))],
        issubclass(learn.NanLossDuringTrainingError, RuntimeError),
    ]
