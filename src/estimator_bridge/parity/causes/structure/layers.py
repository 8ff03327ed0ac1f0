"""Layers as the graph shows them: broadcasts, flattened tensors, dropout, normalization and its moving averages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import FORWARD, TRAINING, UNEXPLAINED, Parting, Stage, at, update_fits
from estimator_bridge.parity.evidence import DropoutSite, Evidence, ForwardValue, GraphFacts


@at(FORWARD)
def label_broadcast(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if only one side's step combines shapes [B, 1] and [B]: its loss is that of B x B pairs."""
    batches = [side.batch_shapes.items() for side in (evidence.old, evidence.new)]
    labels = [[shape for path, shape in batch if path.startswith("labels")] for batch in batches]
    before, after = (
        {*(side.graph.broadcasts if side.graph else ()), *_of_pairs(side.forward, static=side.graph is None)}
        for side in (evidence.old, evidence.new)
    )
    is_known = bool(evidence.new.graph or evidence.new.forward)
    ranks = [sorted(map(len, side)) for side in labels]  # all that is known of an eager step before it was looked at
    is_other = len(after) > len(before) or bool(before and not after) if is_known else bool(ranks[1]) and ranks[0] != ranks[1]
    if not is_other:
        return
    here, there = place.steps
    is_old = is_known and len(before) > len(after)
    spelled = [", ".join(str(list(shape)) for shape in side) or "unknown" for side in labels]
    what = f"{some([*before] if is_old else [*after], 2)} of the {'old' if is_old else 'new'} script combines"
    seen = f"{what if is_known else 'The new script may combine'} shapes like [B, 1] and [B], which gives [B, B]. Labels: old {spelled[0]}, new {spelled[1]}. Losses: old {here.loss:.6g}, new {there.loss:.6g}."
    change = (
        "Give labels and outputs one shape in the new script's loss (tf.squeeze(outputs, -1) or labels[:, None]). "
        "compile(loss=f) gives f labels of shape (B, 1) for (B,); compute_loss gets them as they are."
    )
    if is_old:
        change = (
            "To train as the old script did, combine the same shapes; the old script's loss is probably not what was meant."
        )
    yield place.cause(CauseName.BROADCAST, seen, change)


def _of_pairs(side: Sequence[ForwardValue], static: bool) -> tuple[str, ...]:
    """Returns the values of shape [B, B] that are computed from shapes [B, 1] and [B].

    Args:
        side: Values of one side.
        static: True to look at known shapes, too; those that are not known are found by their number of elements.
    """
    shapes = {place: value.shape or () for place, value in enumerate(side)}
    pairs = ((value, sorted((shapes[one] for one in value.inputs), key=len)) for value in side)
    return tuple(
        value.name
        for value, read in pairs
        if (value.shape is None and _is_of_pairs([value.size, *(side[place].size for place in value.inputs)]))
        or (
            static
            and len(read) == 2
            and len(read[0]) == 1
            and read[0] != (1,)
            and (*read[0], 1) == read[1]
            and value.shape == (*read[0], *read[0])
        )
    )


def _is_of_pairs(sizes: Sequence[float]) -> bool:
    """Returns True if a size is the square of two others, which are equal."""
    return len(sizes) == 3 and sizes[1] == sizes[2] > 1 and sizes[0] == sizes[1] ** 2


@at(FORWARD)
def dropout(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the training steps have other dropout operations."""
    if evidence.old.dropout is None or evidence.new.dropout is None:
        return
    old, new = ([site for site in side.dropout or () if site.rate != 0] for side in (evidence.old, evidence.new))
    if not _agree(old, new):
        seen = f"Dropout of a training step: old {_sites(old)}; new {_sites(new)}."
        change = "Use the old script's rate: the share of units to drop, i.e. 1 - keep_prob."
        if len(old) > len(new):
            change = "Add the dropout to the new script, and call the model with training=True in the training step."
        elif sorted(map(_rate, old)) == sorted(map(_rate, new)):
            change = "Drop units of the same tensors as the old script: move the dropout, or compare the sizes of its layers."
        elif len(old) < len(new):
            change = "Remove the dropout from the new script, or call the model with training=False where the old one does."
        yield place.cause(CauseName.DROPOUT, seen, change)


@at(FORWARD)
def flatten_order(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if a tensor of the same sizes in another order is flattened: channels_first and channels_last."""
    old, new = (side.graph or GraphFacts() for side in (evidence.old, evidence.new))
    for shape in old.flattened:
        others = [one for one in new.flattened if one not in old.flattened and sorted(one) == sorted(shape)]
        if others and shape not in new.flattened:
            here, there = (f"[batch, {', '.join(map(str, one))}]" for one in (shape, others[0]))
            change = (
                f"Transpose to {here} before Flatten in the new script (keras.layers.Permute), "
                "or use the old script's data_format. The weights that follow have that order."
            )
            yield place.cause(CauseName.FLATTEN_ORDER, f"The old script flattens {here}, the new one {there}.", change)
            return


@at(FORWARD)
def batch_norm_epsilon(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if normalization adds another number to the variance."""
    graphs = (side.graph or GraphFacts() for side in (evidence.old, evidence.new))
    here, there = (sorted({float(f"{epsilon:.5g}") for epsilon in graph.epsilons}) for graph in graphs)
    if here and there and here != there:
        old, new = (some([f"{epsilon:g}" for epsilon in side]) for side in (here, there))
        seen = f"Normalization adds {old} to the variance in the old script, {new} in the new one."
        change = f"Give the new layers epsilon={here[0]:g} (tf.layers and Keras: 1e-3, slim and tf.contrib.layers: 1e-3)."
        yield place.cause(CauseName.BATCH_NORM_EPSILON, seen, change)


def _rate(site: DropoutSite) -> float:
    return -1.0 if site.rate is None else site.rate


def _agree(old: list[DropoutSite], new: list[DropoutSite]) -> bool:
    """Returns True if the operations are equal as far as rates and sizes are known."""
    both = [*old, *new]
    is_known = [None not in {site.rate for site in both}, all(site.shape and None not in site.shape for site in both)]
    keys = [[(site.rate if is_known[0] else None, site.shape if is_known[1] else None) for site in side] for side in (old, new)]
    return Counter(keys[0]) == Counter(keys[1])


def _sites(sites: list[DropoutSite]) -> str:
    return ", ".join(f"{site.rate} of [{', '.join(map(str, ('batch', *site.shape)))}]" for site in sites[:4]) or "none"


_MOMENTA = (0.9, 0.95, 0.99, 0.997, 0.999)


@at(TRAINING - {Stage.LATER})
def batch_norm_updates(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if only one side changes moving averages."""
    still, moved = one_sided_averages(evidence, place)
    if still:
        seen = f"The old script's step changes {some(still)}; the new one's does not."
        change = (
            "Call the model with training=True in the training step, and do not freeze the layer (trainable=False): "
            "only then batch norm uses the batch's statistics and updates its averages."
        )
        yield place.cause(CauseName.BATCH_NORM_UPDATES, seen, change, still)
    elif moved:
        seen = f"The new script's step changes {some(moved)}; the old one's does not: it does not run UPDATE_OPS, or not of this layer."
        change = "To train as the old script did, keep these averages: call the layer with training=False, or use momentum=1."
        yield place.cause(CauseName.BATCH_NORM_UPDATES, seen, change, moved)


def one_sided_averages(evidence: Evidence, place: Parting) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the moving averages that only the old side changes at a step, and those that only the new one changes."""
    if not place.index or place.stage is Stage.LATER:
        return (), ()
    fits = [fit for fit in update_fits(*place.steps) if fit.name in evidence.old.moving_averages]
    still = tuple(fit.name for fit in fits if fit.old and not fit.new)
    return still, tuple(fit.name for fit in fits if fit.new and not fit.old)


@at({Stage.AVERAGE})
def batch_norm_momentum(_: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if moving averages move by another amount."""
    ratios = [fit.ratio[0] for fit in place.fits]
    if np.ptp(ratios) < 0.02 * abs(max(ratios)) and all(fit.ratio[1] < UNEXPLAINED for fit in place.fits):
        ratio = float(np.median(ratios))
        seen = (
            f"{some(place.names)} move x{ratio:.4g} as far: 1 - momentum is {ratio:.4g} times the old script's.{_likely(ratio)}"
        )
        change = "Give the new layer the old one's momentum (tf.layers and Keras: 0.99, slim and tf.contrib.layers: 0.999)."
    else:
        seen = f"{some(place.names)} move by other amounts: {place.ratios}."
        change = "Compare momentum, and whether the variance is the unbiased one (fused batch norm, N / (N - 1))."
    yield place.cause(CauseName.BATCH_NORM_MOMENTUM, seen, change, place.names)


def _likely(ratio: float) -> str:
    pairs = [(old, new) for old in _MOMENTA for new in _MOMENTA if abs((1 - new) / (1 - old) / ratio - 1) < 0.02]
    return f" E.g. {pairs[0][0]} in the old script, {pairs[0][1]} in the new one." if pairs else ""
