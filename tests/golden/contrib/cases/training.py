"""Cases of tf.contrib.training."""

import tempfile

import tensorflow as tf
from record import floats

training = tf.contrib.training
TYPES = {"i": int, "f": float, "s": str, "b": bool, "a.b": int}


def _hparams():
    return training.HParams(i=1, f=0.5, s="text", b=True, many=[1, 2], words=["a", "b"], rates=(0.1, 0.2), nothing=None)


def hparams():
    made = _hparams()
    return {
        "values": made.values(),
        "attribute": made.f,
        "text": str(made),
        "repr": repr(made),
        "json": made.to_json(sort_keys=True),
        "indented": made.to_json(indent=1, separators=(",", ":"), sort_keys=True),
        "contains": ["i" in made, "j" in made],
        "get": [made.get("i"), made.get("j"), made.get("j", 3), made.get("f", 1.5), made.get("many", [3])],
        "structure": [made.set_model_structure("kept"), made.get_model_structure()],
    }


def hparams_parse():
    texts = [
        "i=3",
        "f=2",
        "f=1e-3,i=-4",
        "b=false",
        "b=1,s=relu",
        "many=[4,5,6]",
        "words=[x y,z]",
        "many=[7]",
        "rates=[1]",
        "s=",
        " i=3",
        "i = 3",
        "nothing=3",
        "many=[]",
    ]
    bad = [
        "i=1.5",
        "i=x",
        "b=maybe",
        "unknown=1",
        "many=3",
        "i=[1]",
        "i=1,i=2",
        "many[0]=3",
        "i=1;f=2",
        "=1",
        "f=[1,x]",
        "i=3 ,f=1",
    ]
    return {"good": {t: _outcome(lambda t=t: _hparams().parse(t).values()) for t in texts + bad}}


def hparams_change():
    made = _hparams()
    made.set_hparam("f", 3)
    made.override_from_dict({"words": ["c"], "i": 7})
    made.set_from_map({"s": "other"})
    made.parse_json('{"b": false, "many": [8, 9]}')
    made.add_hparam("late", 4)
    made.del_hparam("i")
    made.del_hparam("i")
    attempts = {
        "unknown": lambda: made.set_hparam("j", 1),
        "float_for_int": lambda: made.set_hparam("late", 1.5),
        "bool_for_int": lambda: made.set_hparam("late", True),
        "int_for_bool": lambda: made.set_hparam("b", 1),
        "int_for_text": lambda: made.set_hparam("s", 1),
        "text_for_float": lambda: made.set_hparam("f", "1"),
        "scalar_for_list": lambda: made.set_hparam("many", 1),
        "list_for_scalar": lambda: made.set_hparam("f", [1]),
        "tuple_for_list": lambda: made.set_hparam("many", (1, 2)),
        "anything_for_none": lambda: made.set_hparam("nothing", [1, 2]),
        "anything_for_none_alone": lambda: made.set_hparam("nothing", "x"),
        "default_of_other_type": lambda: made.get("f", "x"),
        "list_as_default": lambda: made.get("f", [1.0]),
        "taken": lambda: made.add_hparam("f", 2),
        "reserved": lambda: made.add_hparam("values", 2),
        "empty": lambda: made.add_hparam("empty", []),
    }
    return {"attempts": {name: _outcome(attempt) for name, attempt in attempts.items()}, "values": made.values()}


def parse_values():
    texts = [
        "i=1,f=2,s=x,b=true",
        "i[0]=1,i[2]=5",
        "i=[1, 2],s=[a b]",
        "a.b=3",
        "f=-.5e3",
        "s=a b",
        "z=1,i=2",
        "i[1]=1,i[1]=2",
        "b=True",
    ]
    bad = ["i[0]=1,i=2", "i=1,i[0]=2", "i[0]=[1]", "i=[1,2],i=[3]", "s=a[b", "i=", "b=2", "b=x", ""]
    strict = {text: _outcome(lambda text=text: training.parse_values(text, TYPES)) for text in texts + bad}
    return {"strict": strict, "lenient": training.parse_values("z=1,i=2", TYPES, ignore_unknown=True)}


def placement_strategies():
    names = [tf.constant(1, name=name).op for name in ("one", "two", "three", "four", "five")]
    random = [training.RandomStrategy(3), training.RandomStrategy(3, seed=7)]
    greedy = training.GreedyLoadBalancingStrategy(2, training.byte_size_load_fn)
    sizes = [tf.get_variable(name, shape, tf.float64) for name, shape in (("a", [3, 2]), ("b", [1]), ("c", [2]), ("d", []))]
    return {
        "random": [[strategy(op) for op in names] for strategy in random],
        "greedy": [int(greedy(variable.op)) for variable in sizes],
        "bytes": [int(training.byte_size_load_fn(variable.op)) for variable in sizes],
        "several": _outcome(lambda: training.byte_size_load_fn(tf.split(tf.zeros([4]), 2)[0].op))[:20],
    }


def create_train_op():
    weights = tf.get_variable("weights", [3])
    counter = tf.get_variable("counter", [], initializer=tf.zeros_initializer(), trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(counter, 1.0))
    loss = tf.reduce_sum((weights - floats(3)) ** 2)
    train_op = training.create_train_op(
        loss,
        tf.train.GradientDescentOptimizer(0.25),
        transform_grads_fn=training.clip_gradient_norms_fn(0.5),
        summarize_gradients=True,
    )
    return {"run": train_op, "step": tf.train.get_global_step()}


def create_train_op_without_step():
    weights = tf.get_variable("weights", [3])
    other = tf.get_variable("other", [3])
    loss = tf.reduce_sum(weights**2) + tf.reduce_sum(other)
    sgd = tf.train.GradientDescentOptimizer(0.25)
    return {"run": training.create_train_op(loss, sgd, None, [], variables_to_train=[weights], check_numerics=False)}


def gradients():
    first, second = tf.get_variable("first", [2]), tf.get_variable("second", [2])
    pairs = [(floats(2), first), (tf.IndexedSlices(floats(1), tf.constant([1])), second), (None, first)]
    multiplied = training.multiply_gradients(pairs[:2], {first: 3.0, second: tf.constant(0.5)})
    summaries = training.add_gradients_summaries(pairs)
    clipped = training.clip_gradient_norms(pairs, 0.1)
    return {"clipped": clipped[:2], "multiplied": multiplied, "summaries": [summary.name for summary in summaries]}


def train_and_evaluate():
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", initializer=tf.constant([1.0, 2.0]))
        train_op = training.create_train_op(tf.reduce_sum(weights**2), tf.train.GradientDescentOptimizer(0.25))
        last = training.train(train_op, folder, hooks=[tf.train.StopAtStepHook(num_steps=3)])
    path = training.wait_for_new_checkpoint(folder, timeout=5)
    paths = list(training.checkpoints_iterator(folder, timeout=0, timeout_fn=lambda: True))
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", [2])
        tf.train.get_or_create_global_step()
        value, update = tf.metrics.mean(weights)
        once = training.evaluate_once(path, eval_ops=update, final_ops=value, hooks=[training.StopAfterNEvalsHook(2)])
        steps = training.get_or_create_eval_step()
    with tf.Graph().as_default():
        weights = tf.get_variable("weights", [2])
        tf.summary.scalar("sum", tf.reduce_sum(weights))
        repeated = training.evaluate_repeatedly(
            folder,
            final_ops={"weights": weights},
            hooks=[training.SummaryAtEndHook(folder + "/eval"), training.StopAfterNEvalsHook(1)],
            eval_interval_secs=0,
            max_number_of_evaluations=1,
        )
    written = [value.tag for event in _events(folder + "/eval") for value in event.summary.value]
    return {
        "last": last,
        "paths": len(paths),
        "once": once,
        "repeated": repeated,
        "summaries": written,
        "eval_step": steps.name,
    }


def _events(folder):
    (path,) = tf.gfile.Glob(folder + "/events*")
    return tf.train.summary_iterator(path)


def _outcome(call):
    try:
        return call()
    except (KeyError, TypeError, ValueError) as error:
        return "%s: %s" % (type(error).__name__, str(error).replace(", in ", " in "))
