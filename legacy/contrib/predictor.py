"""``tf.contrib.predictor``: a function of NumPy arrays made from an export or from a trained Estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow.compat.v1 as tf

__all__ = ["from_estimator", "from_saved_model"]

_SERVING = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


class Predictor:
    """Runs a model's outputs on inputs by name.

    Attributes:
        graph: the model's graph.
        session: that runs it; closing it is the caller's affair.
        feed_tensors: inputs by name.
        fetch_tensors: outputs by name.
    """

    def __init__(self, graph: Any, session: Any, feeds: Mapping[str, str], fetches: Mapping[str, str]) -> None:
        self.graph = graph
        self.session = session
        self.feed_tensors = {key: graph.get_tensor_by_name(name) for key, name in feeds.items()}
        self.fetch_tensors = {key: graph.get_tensor_by_name(name) for key, name in fetches.items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__} with feed tensors {self.feed_tensors} and fetch_tensors {self.fetch_tensors}"

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for a batch of inputs.

        Args:
            input_dict: arrays by the names of ``feed_tensors``; None and missing ones are not fed.

        Raises:
            ValueError: a name that is no input.
        """
        if unexpected := input_dict.keys() - self.feed_tensors.keys():
            raise ValueError(f"Got unexpected keys in input_dict: {unexpected}\nexpected: {set(self.feed_tensors)}")
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items() if value is not None}
        return dict(self.session.run(self.fetch_tensors, feeds))


IN_FILES = {"Predictor": Predictor}


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """A predictor of an export.

    Args:
        export_dir: of a SavedModel with a graph and sessions' signatures, as Estimators export it.
        signature_def_key: of its signatures; the default one unless given.
        signature_def: or a signature.
        input_names: or tensors by name, together with ``output_names``.
        output_names: likewise.
        tags: which of its graphs, separated by commas; ``serve`` unless given.
        graph: where to load it; a new one unless given.
        config: of the session.

    Raises:
        ValueError: more than one way to name inputs and outputs, or a signature that is not there.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")
    if sum(given is not None for given in (signature_def_key, signature_def, input_names)) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR (input_names AND output_names)."
        )
    graph = graph or tf.Graph()
    with graph.as_default():
        session = tf.Session(config=config)
        meta_graph = tf.saved_model.loader.load(session, (tags or "serve").split(","), export_dir)
    if input_names is not None and output_names is not None:
        return Predictor(graph, session, input_names, output_names)
    return _from_signature(graph, session, signature_def or _signature(meta_graph, signature_def_key or _SERVING))


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Any = None,
    config: Any = None,
) -> Predictor:
    """A predictor of an Estimator at its latest checkpoint.

    Args:
        estimator: a trained one.
        serving_input_receiver_fn: what makes the placeholders.
        output_key: of the model's export_outputs; the default one unless given.
        graph: where to build it; a new one unless given.
        config: of the session.

    Raises:
        KeyError: the model has no such output.
    """
    graph = graph or tf.Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        spec = estimator.model_fn(receiver.features, None, tf.estimator.ModeKeys.PREDICT, estimator.config)
        key = output_key or _SERVING
        if key not in spec.export_outputs:
            raise KeyError(f"output_key must be one of {list(spec.export_outputs)}; got {key}")
        signature = spec.export_outputs[key].as_signature_def(receiver.receiver_tensors)
        creator = tf.train.ChiefSessionCreator(config=config, checkpoint_dir=estimator.model_dir)
        session = tf.train.MonitoredSession(creator)
    return _from_signature(graph, session, signature)


def _from_signature(graph: Any, session: Any, signature: Any) -> Predictor:
    feeds = {key: tensor.name for key, tensor in signature.inputs.items()}
    fetches = {key: tensor.name for key, tensor in signature.outputs.items()}
    return Predictor(graph, session, feeds, fetches)


def _signature(meta_graph: Any, key: str) -> Any:
    signatures = meta_graph.signature_def
    for name in (key, f"default_input_alternative:{key}"):  # the latter by contrib.learn's exports
        if name in signatures:
            return signatures[name]
    raise ValueError(f'Got signature_def_key "{key}". Available signatures are {list(signatures)}.')
