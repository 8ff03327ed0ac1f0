"""Variables that only one side has or trains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from estimator_bridge.parity.causes.cause import Cause, CauseName, shown_name, some
from estimator_bridge.parity.causes.measures import Stage, gradient_fits, parting, update_fits
from estimator_bridge.parity.causes.structure.layers import one_sided_averages
from estimator_bridge.parity.evidence import Evidence, SideEvidence

_SPATIAL = ("Conv", "DepthwiseConv", "MaxPool", "AvgPool")  # types of operations begin so


def unpaired_variables(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause for trainable variables without a counterpart."""
    missing, added = _alone(evidence.old, evidence.unmatched_old), _alone(evidence.new, evidence.unmatched_new)

    def spelled(names: list[str]) -> str:
        shown = [shown_name(name) for name in names]
        shapes = [f" {list(evidence.shapes[name])}" if name in evidence.shapes else "" for name in names]
        return some([f"{name}{shape}" for name, shape in zip(shown, shapes, strict=True)])

    both = tuple(missing + added)
    if missing and added:
        ranks = [sorted(len(evidence.shapes.get(name, ())) for name in side) for side in (missing, added)]
        kind = CauseName.SHAPES if ranks[0] == ranks[1] else CauseName.MISSING_VARIABLES
        seen = f"{spelled(missing)} of the old script and {spelled(added)} of the new one have no counterpart."
        change = "Give the layers of the new script the sizes of the old one's; name pairs with --map if only names differ."
        if kind is CauseName.SHAPES and _outputs(evidence, missing) == _outputs(evidence, added):
            times = _times(evidence, missing, added)
            change = (
                f"What these layers are given has another size{times}: compare padding, strides, pooling and concatenation before them; "
                "of a table, e.g. of embeddings or crossed columns, the number of its buckets or words."
            )
            if other := _first_other_size(evidence):
                seen, change = f"{seen} {other}", "Compare padding, strides and sizes of these operations."
        yield Cause(kind, seen, change, evidence.start, both)
    elif both:
        kind = CauseName.MISSING_VARIABLES if missing else CauseName.EXTRA_VARIABLES
        seen = f"The {'new' if missing else 'old'} script has no counterpart of {spelled(missing or added)}."
        change = "Remove the layer, or its bias (use_bias=False, center=False, scale=False), from the new script."
        if missing:
            change = "Add the layer, bias or embedding to the new script that has these variables."
        yield Cause(kind, seen, change, evidence.start, both)


def _alone(side: SideEvidence, names: Sequence[str]) -> list[str]:
    """Returns the trainable variables without a counterpart on which a loss depends."""
    unread = side.unread(names)
    return [name for name in names if name in side.trainable and name not in unread]


def _outputs(evidence: Evidence, names: list[str]) -> list[tuple[int, ...]]:
    """Returns the sizes of variables without those of the layers' inputs."""
    return sorted(evidence.shapes.get(name, ())[1:] for name in names)


def _times(evidence: Evidence, missing: list[str], added: list[str]) -> str:
    """Returns words for inputs that are a whole number of times as large on one side."""
    sides = [[evidence.shapes.get(name, ()) for name in names] for names in (missing, added)]
    here, there = (max((shape[0] for shape in shapes if len(shape) == 2), default=0) for shapes in sides)
    if not here or not there or max(here, there) % min(here, there):
        return ""
    side, times = ("old", here // there) if here > there else ("new", there // here)
    return f", {times} times as large in the {side} script (all steps of a sequence, or places of an image, for one or a mean?)"


def _first_other_size(evidence: Evidence) -> str:
    """Returns a sentence on the first convolution or pooling whose outputs have another size."""
    old, new = ([one for one in side.forward if one.type.startswith(_SPATIAL)] for side in (evidence.old, evidence.new))
    for pair in zip(old, new, strict=False):
        sizes = [one.shape[1:] for one in pair if one.shape]
        if len(sizes) == 2 and sizes[0] != sizes[1]:
            here, there = (
                f"{one.type} ({one.name}) gives [batch, {', '.join(map(str, size))}]"
                for one, size in zip(pair, sizes, strict=True)
            )
            return f"The first other size: old {here}, new {there}."
    return ""


def untrained_variables(evidence: Evidence) -> Iterator[Cause]:
    """Yields a cause for variables that only one side trains."""
    for old, new in zip(evidence.old.steps[:1], evidence.new.steps[:1], strict=True):
        here, there, known = old.gradients(), new.gradients(), old.before()
        if not here or not there:
            return
        frozen = [name for name in here if name not in there and name in known]
        frozen += [name for name in _stopped(evidence) if name not in frozen]
        still, _ = one_sided_averages(evidence, parting(evidence))
        layers = {name.rpartition("/")[0] for name in still}  # the layer as a whole is in inference mode, a cause of its own
        frozen = [name for name in frozen if name.rpartition("/")[0] not in layers]
        if frozen:
            seen = f"The old script trains {some(frozen)}; in the new script they get no gradient or no update."
            change = "Set trainable=True, remove tf.stop_gradient, and give the variables to the tape and to the optimizer."
            yield Cause(CauseName.FROZEN_VARIABLES, seen, change, evidence.start + old.index, tuple(frozen))
        untrained = {*evidence.old.moving_averages, *evidence.old.trainable} - here.keys()
        trained = [name for name in there if name in untrained]
        if trained:
            seen = f"The new script trains {some(trained)}; the old script gives their gradients to no optimizer."
            change = "Set trainable=False for these variables, or leave them out of the tape's sources."
            yield Cause(CauseName.TRAINED_VARIABLES, seen, change, evidence.start + old.index, tuple(trained))


def _stopped(evidence: Evidence) -> list[str]:
    """Returns variables whose gradient or update is 0 in the new script alone."""
    place = parting(evidence)
    if place.stage not in {Stage.GRADIENT, Stage.APPLIED, Stage.UPDATE}:
        return []
    old, new = place.steps
    rates = [one.hyperparameters.get("learning_rate") for one in new.optimizers]
    if place.stage is Stage.UPDATE and rates and not any(rates):  # a schedule that begins with 0
        return []
    fits = update_fits(old, new) if place.stage is Stage.UPDATE else gradient_fits(old, new, place.stage is Stage.APPLIED)
    ignored = {*evidence.slots, *evidence.old.moving_averages}
    return [fit.name for fit in fits if fit.differs and not fit.new and fit.old and fit.name not in ignored]
