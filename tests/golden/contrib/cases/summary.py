"""Cases of tf.contrib.summary: the events that are written."""

import glob
import tempfile

import numpy as np
import tensorflow as tf

summary = tf.contrib.summary


def _events(folder, suffix=".v2"):
    (path,) = glob.glob(folder + "/events*" + suffix)
    return sorted((_told(event) for event in tf.train.summary_iterator(path)), key=str)  # of one step, in any order


def _told(event):
    for value in event.summary.value:
        kind = value.WhichOneof("value")
        content = getattr(value, kind)
        if kind == "histo":
            content = [content.min, content.max, content.num]
        elif kind == "image":
            content = [content.height, content.width]
        elif kind == "audio":
            content = [content.sample_rate, content.length_frames]
        elif kind == "tensor":
            content = tf.contrib.util.make_ndarray(content)
        return [event.step, value.tag, kind, content, value.metadata.plugin_data.plugin_name]
    return [event.step, event.WhichOneof("what")]


def _run(build, steps=3, **options):
    """Builds with a writer as the default one, runs all summaries at each step."""
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default() as graph:
        step = tf.train.get_or_create_global_step()
        writer = summary.create_file_writer(folder, **options)
        with writer.as_default():
            build(step)
            all_ops, flushed = summary.all_summary_ops(), summary.flush()
            with tf.control_dependencies(all_ops):
                advanced = tf.assign_add(step, 1)
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                summary.initialize(session=session)
                for _ in range(steps):
                    session.run([advanced, *list(all_ops)])
                session.run(flushed)
                session.run(writer.close())
    kinds = sorted({operation.type for operation in graph.get_operations() if "Summary" in operation.type})
    return [_events(folder), kinds, len(all_ops)]


def kinds():
    def build(step):
        with summary.always_record_summaries(), tf.name_scope("scope"):
            summary.scalar("loss", tf.cast(step, tf.float32) * 0.5, family="mine")
            summary.histogram("h", tf.constant([1.0, 2.0, 4.0]))
            summary.image("i", tf.zeros([5, 2, 3, 1]), max_images=1)
            summary.audio("a", tf.zeros([1, 8, 1]), 100, 1)
            summary.generic("g", tf.constant([1, 2]), step=7)
            summary.generic("m", tf.constant("text"), tf.SummaryMetadata(plugin_data={"plugin_name": "p"}))

    return _run(build, 2)


def every_n_global_steps():
    def build(step):
        with summary.record_summaries_every_n_global_steps(2):
            summary.scalar("even", step)
        with summary.record_summaries_every_n_global_steps(3, tf.constant(3, tf.int64)):
            summary.scalar("third", 1.0)

    return _run(build, 5)


def never():
    def build(step):
        summary.scalar("unsaid", 1.0)
        with summary.never_record_summaries():
            summary.scalar("never", 1.0)

    return _run(build)


def should_record_summaries():
    writer = summary.create_file_writer(tempfile.mkdtemp())
    answers = []
    with writer.as_default():
        answers.append(summary.should_record_summaries())
        with summary.always_record_summaries():
            answers.append(summary.should_record_summaries())
        with summary.never_record_summaries():
            answers.append(summary.should_record_summaries())
    return answers


def graph_and_import():
    folder = tempfile.mkdtemp()
    with tf.Graph().as_default() as graph:
        tf.constant(1, name="one")
        writer = summary.create_summary_file_writer(folder, max_queue=1, flush_millis=10, filename_suffix=".mine", name="named")
        event = tf.Event(step=9, summary=tf.Summary(value=[tf.Summary.Value(tag="t", simple_value=2.5)]))
        with writer.as_default():
            drawn = summary.graph(tf.placeholder_with_default(tf.GraphDef().SerializeToString(), []), step=4)
            imported = summary.import_event(tf.constant(event.SerializeToString()))
            with tf.Session() as session:
                session.run(summary.summary_writer_initializer_op())
                summary.initialize(graph, session)
                session.run(drawn)
                session.run(imported)
                session.run(summary.flush(writer))
    resources = [op.get_attr("shared_name").decode() for op in graph.get_operations() if op.type == "SummaryWriter"]
    return [_events(folder, ".mine"), resources, isinstance(writer, summary.SummaryWriter)]


def no_writer():
    with tf.Graph().as_default(), summary.always_record_summaries():
        operation = summary.scalar("x", 1.0)
    nothing = summary.create_file_writer(None)
    try:
        summary.initialize()
    except RuntimeError as error:
        message = str(error)
    return [
        operation.type,
        len(summary.all_summary_ops()),
        message,
        nothing.init(),
        np.shape(summary.summary_writer_initializer_op()),
    ]


def eval_dir():
    return [summary.eval_dir("model"), summary.eval_dir("model", "test")]
