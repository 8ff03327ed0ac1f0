"""Records what the trainings in trainings/ do: python make_trainings.py FOLDER [NAME ...] (TensorFlow 1.15.5, Python 3.7, CPU).

Writes FOLDER/trainings.json. Each script runs twice: its variables and their initial values are taken from the first run; the second
starts from the checkpoint that ``initial_values`` makes of them. ESTIMATOR_BRIDGE_CONTRIB names the folder of the fetched tf.contrib,
whose gan TensorFlow 1.15.5 lacks.
"""

import json
import os
import runpy
import shutil
import sys
import tempfile
import traceback

import initial_values
import tensorflow as tf
import tensorflow.contrib
from tensorflow.core.framework import variable_pb2

HERE = os.path.dirname(os.path.abspath(__file__))
GAN = os.path.join(os.environ.get("ESTIMATOR_BRIDGE_CONTRIB", ""), "sources", "tensorflow", "contrib")
TRAININGS = {  # name -> script and variant
    "cells": ["cells.py"],
    "clusters": ["clusters.py"],
    "clusters mini-batches": ["clusters.py", "mini-batches"],
    "data": ["data.py"],
    "distributions": ["distributions.py"],
    "gan estimator": ["gan.py", "estimator"],
    "gan joint": ["gan.py", "joint"],
    "gan sequential": ["gan.py", "sequential"],
    "heads extended": ["heads.py", "extended"],
    "heads functions": ["heads.py", "functions"],
    "heads multi": ["heads.py", "multi"],
    "heads multi_label": ["heads.py", "multi_label"],
    "heads own": ["heads.py", "own"],
    "heads recurrent": ["heads.py", "recurrent"],
    "layers Adagrad": ["layers.py", "Adagrad"],
    "layers RMSProp": ["layers.py", "RMSProp"],
    "learn canned": ["learn.py", "canned"],
    "learn estimator": ["learn.py", "estimator"],
    "learn experiment": ["learn.py", "experiment"],
    "learn factors": ["learn.py", "factors"],
    "learn mixture": ["learn.py", "mixture"],
    "opt": ["opt.py"],
    "seq2seq": ["seq2seq.py"],
    "slim layers": ["slim.py", "layers"],
    "slim resnet": ["slim.py", "resnet"],
    "tagger": ["tagger.py"],
    "timeseries autoregressive": ["timeseries.py", "autoregressive"],
    "timeseries structural": ["timeseries.py", "structural"],
}


def execute(folder, arguments):
    """Runs one script, as TensorFlow 1.14 would have, with gan."""
    path = os.path.join(HERE, "trainings", arguments[0])
    sys.argv = [path, folder, *arguments[1:]]
    sys.path[0] = os.path.dirname(path)
    runpy.run_path(path, run_name="__main__")


def child(function, *arguments):
    """The lines that a function prints in a process of its own, which has TensorFlow imported."""
    reader, writer = os.pipe()
    started = os.fork()
    if not started:
        os.dup2(writer, 1)
        try:
            function(*arguments)
            sys.stdout.flush()
            os._exit(0)
        except BaseException:  # noqa: BLE001 -- a script may call sys.exit
            traceback.print_exc()
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as stream:
        lines = stream.read().splitlines()
    if os.waitpid(started, 0)[1]:
        raise RuntimeError("it has failed")
    return lines


def trained(folder):
    """The names of the trainable variables of a graph, as its checkpoint has them."""
    graph = tf.compat.v1.MetaGraphDef()
    with open(os.path.join(folder, "model.ckpt-0.meta"), "rb") as stream:
        graph.ParseFromString(stream.read())
    found = set()
    for serialized in graph.collection_def["trainable_variables"].bytes_list.value:
        variable = variable_pb2.VariableDef.FromString(serialized)
        found.add(variable.save_slice_info_def.full_name or variable.variable_name.split(":")[0])
    return found


def record(arguments):
    """What one script does."""
    scratch = tempfile.mkdtemp()
    try:
        first, second = os.path.join(scratch, "first"), os.path.join(scratch, "second")
        child(execute, first, arguments)
        reader = tf.compat.v1.train.NewCheckpointReader(os.path.join(first, "model.ckpt-0"))
        names, learned = reader.get_variable_to_shape_map(), trained(first)
        variables = {name: initial_values.describe(reader.get_tensor(name), name in learned) for name in names}
        child(initial_values.write, second, variables)
        report = json.loads(child(execute, second, arguments)[-1])
        return {"command": arguments, "initial": variables, "report": report, "final": initial_values.digests(second)}
    finally:
        shutil.rmtree(scratch)


def main():
    """Records the given trainings anew, or all."""
    path = os.path.join(sys.argv[1], "trainings.json")
    recorded = {}
    if os.path.exists(path):
        with open(path) as stream:
            recorded = json.load(stream)
    for name in sys.argv[2:] or sorted(TRAININGS):
        print(name, flush=True)
        try:
            recorded[name] = record(TRAININGS[name])
        except RuntimeError as error:
            print(error)
        with open(path, "w") as stream:
            stream.write(
                json.dumps({name: recorded[name] for name in TRAININGS if name in recorded}, sort_keys=True, indent=1) + "\n"
            )


if __name__ == "__main__":
    tensorflow.contrib.__path__.append(GAN)
    main()
