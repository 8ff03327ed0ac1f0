"""The first value of the forward pass that only one side computes, found by the values of all that both sides compute.

Right rewrites compute the same in other ways, so a value without a counterpart is no difference where a later one has its counterpart
again. That is why the walk goes back from the loss, and ends at each value that both sides have.
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Collection, Iterator, Sequence

from estimator_bridge.parity.causes.cause import Cause, CauseName, some
from estimator_bridge.parity.causes.measures import FORWARD, Parting, at
from estimator_bridge.parity.evidence import Evidence, ForwardValue

_NEAR = 2e-5  # relative to the sum of sizes
_PROBABILITIES = frozenset({"Softmax", "LogSoftmax", "Sigmoid"})
_ACTIVATIONS = _PROBABILITIES | {"Relu", "Relu6", "Elu", "Selu", "LeakyRelu", "Tanh", "Softplus", "Softsign", "Erf"}
_REORDERING = frozenset(
    {
        "Transpose",
        "Reshape",
        "ConcatV2",
        "Pack",
        "Unpack",
        "ExpandDims",
        "Squeeze",
        "ReverseSequence",
        "ReverseV2",
        "StridedSlice",
        "Split",
        "SplitV",
    }
)
_PADS = ("Pad", "PadV2")
_MOVING = _REORDERING - {"ConcatV2", "Reshape", "ExpandDims", "Squeeze"}
_CHOICE = "tf.where"
_CHOICES = dict.fromkeys(("Select", "SelectV2"), _CHOICE)
_LOSSES = ("CrossEntropy", "logistic_loss", "log_loss")
Side = Sequence[ForwardValue]


@at(FORWARD)
def label_smoothing(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if the labels of a cross entropy are smoothed on one side, or by another number."""
    old, new = (_smoothing(side.forward) for side in (evidence.old, evidence.new))
    if old is not None and new is not None and abs(old - new) > _NEAR:
        seen = f"The labels that the loss gets are smoothed by {old:.4g} in the old script, by {new:.4g} in the new one."
        yield place.cause(CauseName.LABEL_SMOOTHING, seen, f"Give the new script's loss label_smoothing={old:.4g}.")


def _smoothing(side: Side) -> float | None:
    """Returns the share that label smoothing takes from the right class; None without a cross entropy of one kind of labels."""
    found: set[float] = set()
    for value in side:
        if value.type == "SparseSoftmaxCrossEntropyWithLogits":
            found.add(0.0)
        elif value.type == "SoftmaxCrossEntropyWithLogits" and len(value.inputs) == 2:
            labels, rows = side[value.inputs[1]].numbers, value.numbers[:1]
            if rows and labels and abs(labels[1] - rows[0]) < _NEAR * rows[0] and labels[4] >= 0.0:  # each row's sum is 1
                found.add(round(labels[4] * labels[0] / rows[0], 6))
        elif value.type == "Mul" and "logistic_loss" in value.name:
            shares = [_share_of_two(side[place]) for place in value.inputs]
            found |= {share for share in shares if share is not None}
    return found.pop() if len(found) == 1 else None


def _share_of_two(labels: ForwardValue) -> float | None:
    """Returns the share that label smoothing takes from both of two classes; None if a value is none of their labels."""
    if not labels.numbers:
        return None
    count, total, _, squares, least, largest, _ = labels.numbers
    is_two_valued = abs(squares - total * (least + largest) + count * least * largest) < _NEAR * count
    return round(2 * least, 6) if is_two_valued and 0 <= least < largest and abs(least + largest - 1) < _NEAR else None


@at(FORWARD)
def logits_as_probabilities(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause if a cross entropy of Keras clips to probabilities what is none."""
    side = evidence.new.forward
    clipped = (value for value in side if "crossentropy" in value.name and value.name.endswith("clip_by_value/Minimum"))
    for given in (side[one] for value in clipped for one in value.inputs if side[one].numbers):
        count, _, _, _, least, largest, _ = given.numbers
        if count > 1 and (least < 0 or largest > 1):
            seen = f"The new script's loss takes {given.name} for probabilities, and its elements are {least:.3g} to {largest:.3g}."
            yield place.cause(CauseName.LOGITS, seen, "Give the new script's loss from_logits=True.")


@at(FORWARD)
def first_value(evidence: Evidence, place: Parting) -> Iterator[Cause]:
    """Yields a cause that names the first operations whose values the two sides do not share."""
    old, new = evidence.old.forward, evidence.new.forward
    if not (old and new and old[-1].numbers and new[-1].numbers):
        return
    found = _pair(old, new)
    if found and not old[found[0]].is_batch and old[found[0]].type != new[found[1]].type and not _is_simple(old, new, *found):
        # A factor may make values equal that are not the same, e.g. that of dropout.
        surer = [
            (one, other)
            for one in _first(old, new, strict=True)
            for other in _first(new, old, strict=True)
            if one < found[0]
            and old[one].type == new[other].type
            and _shared(old, new, one, other)
            and (old[one].size > 1 or old[found[0]].size <= 1)  # not a factor of a penalty, which may be written otherwise
        ]
        found = min(surer, default=found)
    if found is None:
        return
    mine, its = old[found[0]], new[found[1]]
    shared = _shared(old, new, *found)
    name, seen, change = _explain(old, new, mine, its, shared)
    equal = "What they have in common is equal, as far as size, sums, least and largest element tell. " if shared else ""
    losses = f"Losses from the same values and batch: old {place.steps[0].loss:.8g}, new {place.steps[1].loss:.8g}."
    yield place.cause(name, f"{seen} {equal}{losses}", change, place.names)


def _pair(old: Side, new: Side) -> tuple[int, int] | None:
    """Returns the places of the first values of both sides that differ, which are computed from the same ones; single numbers come last."""
    pairs = [(mine, its) for mine in _first(old, new) for its in _first(new, old)]

    def rank(pair: tuple[int, int]) -> tuple[bool, bool, bool, float, int, int, int]:
        mine, its = pair
        shared, size = len(_shared(old, new, mine, its)), min(old[mine].size, new[its].size)
        is_mask = _is_mask(old[mine]) or _is_mask(new[its])  # which right rewrites compute otherwise, too
        return size > 1, not is_mask, shared > 0, 0.0 if shared else size, -mine, shared, -its

    found = max(pairs, key=rank, default=None) or _hidden(old, new)
    if found and not (_shared(old, new, *found) or old[found[0]].is_batch or new[found[1]].is_batch):
        pairs_in_order = itertools.product(_meeting(old, new), _meeting(new, old))
        shared_by = {pair: shared for pair in pairs_in_order if (shared := _shared(old, new, *pair))}
        telling = (pair for pair, shared in shared_by.items() if not all(_is_mask(one) for one, _ in shared))
        return next(telling, next(iter(shared_by), found))
    return found


def _meeting(side: Side, other: Side) -> list[int]:
    """Returns the places of the values on the way to the loss in which one that the other side computes meets one that it does not."""
    equal = counterparts(side, other, strict=False)
    found = (place for place in sorted(_different(side, equal)) if side[place].size > 1)
    return [place for place in found if any(one in equal and side[one].size > 1 for one in side[place].inputs)]


def _hidden(old: Side, new: Side) -> tuple[int, int] | None:
    """Returns the first activations of the same value that differ, where the loss shows no difference."""
    pairs = (
        (mine, its)
        for mine, value in enumerate(old)
        for its, other in enumerate(new)
        if {value.type, other.type} <= _ACTIVATIONS and value.type != other.type and _shared(old, new, mine, its)
    )
    return next(pairs, None)


def _is_simple(old: Side, new: Side, mine: int, its: int) -> bool:
    """Returns True if a pair is one of an activation, a loop, or elements in another order, which chance does not make."""
    shared = _shared(old, new, mine, its)
    is_moved = any(not _same_order(*pair) and not _is_mask(pair[0]) for pair in shared)
    is_applied = bool({old[mine].type, new[its].type} & _ACTIVATIONS) and any(one.type == other.type for one, other in shared)
    return is_moved or is_applied or bool(old[mine].body or new[its].body)


def _first(side: Side, other: Side, *, strict: bool = False) -> list[int]:
    """Returns the places of the first values that the other side does not compute, in order.

    Args:
        side, other: Values of both sides.
        strict: True for counterparts that operations of the same type compute.
    """
    equal = counterparts(side, other, strict)
    is_loss_equal = len(side) - 1 in equal  # by chance, where gradients differ: then only values of several elements tell
    if is_loss_equal:
        equal = {place: number for place, number in equal.items() if side[place].numbers[0] > 1}
    different = _different(side, equal)
    found = (place for place in sorted(different) if not different.intersection(side[place].inputs))
    return [place for place in found if not is_loss_equal or side[place].numbers[:1] > (1.0,)]


def _different(side: Side, equal: Collection[int]) -> set[int]:
    """Returns the places of the values without a counterpart that the loss is computed from, by way of none that has one."""
    found: set[int] = set()
    waiting = [len(side) - 1]
    while waiting:
        place = waiting.pop()
        if place not in found and place not in equal and side[place].is_data and not side[place].is_variable:
            found.add(place)
            waiting += [one for one in side[place].inputs if not (side[place].body and _is_mask(side[one]))]
    return found


def _is_mask(value: ForwardValue) -> bool:
    """Returns True for a number, and for zeros and ones: a loop over sequences may be given their lengths in any form."""
    _, total, sizes, squares, *_ = value.numbers or (0.0,) * 7
    return value.size <= 1 or total == sizes == squares


def counterparts(side: Side, other: Side, strict: bool) -> dict[int, int]:
    """Returns each value's place -> that of the value of the other side with the same elements, in the same order if there is one."""
    of_size: dict[float, list[int]] = collections.defaultdict(list)
    for number, value in enumerate(other):
        if value.numbers:
            of_size[value.numbers[0]].append(number)
    equal: dict[int, int] = {}
    for place, value in enumerate(side):
        asked = of_size.get(value.numbers[0], ()) if value.numbers else ()
        found = [one for one in asked if _same_elements(value, other[one]) and not (strict and other[one].type != value.type)]
        if value.type in _PADS and value.inputs[0] in equal and not any(one.type in _PADS for one in other):
            equal[place] = equal[value.inputs[0]]  # zeros around what both have are another way to write the same
        if found:
            equal[place] = next((number for number in found if _same_order(value, other[number])), found[0])
    return equal


def _same_elements(one: ForwardValue, other: ForwardValue) -> bool:
    if not one.numbers or not other.numbers or one.numbers[0] != other.numbers[0]:
        return False
    _, _, sizes, squares, least, largest, _ = one.numbers
    largest_size = max(abs(least), abs(largest))
    scales = (0.0, sizes, sizes, squares * 2, largest_size, largest_size)
    gaps = (abs(mine - its) for mine, its in zip(one.numbers, other.numbers, strict=True))
    return all(gap <= _NEAR * scale for gap, scale in zip(gaps, scales, strict=False))


def _same_order(one: ForwardValue, other: ForwardValue) -> bool:
    return abs(one.numbers[-1] - other.numbers[-1]) <= _NEAR * one.numbers[2]


def _shared(old: Side, new: Side, mine: int, its: int) -> list[tuple[ForwardValue, ForwardValue]]:
    """Returns pairs of inputs with the same elements of an old and a new value; of padded ones, without the padding."""
    pairs = ((old[one], new[other]) for one in _without_pads(old, mine) for other in _without_pads(new, its))
    return [pair for pair in pairs if _same_elements(*pair)]


def _without_pads(side: Side, place: int) -> Iterator[int]:
    for one in side[place].inputs:
        yield side[one].inputs[0] if side[one].type in _PADS else one


def _explain(
    old: Side, new: Side, mine: ForwardValue, its: ForwardValue, shared: list[tuple[ForwardValue, ForwardValue]]
) -> tuple[CauseName, str, str]:
    """Returns the name of the cause, what was seen, and what to change."""
    in_order = [pair for pair in shared if _same_order(*pair) or _is_mask(pair[0])]  # 1 - x has as many ones as x by chance
    moved = [pair for pair in shared if not any(one is pair[0] or other is pair[1] for one, other in in_order)]
    if moved and not (mine.body or its.body):  # a loop may have the axis of time first
        return _order(old, new, (mine, its), moved[0])
    both = f"The first values that differ: old {_spell(mine, old)}; new {_spell(its, new)}."
    if mine.body or its.body:
        return _loop(both, mine, its, _not_given(old, new, mine))
    applied = [value.type if value.type in _ACTIVATIONS else "" for value in (mine, its)]
    counted = [collections.Counter(value.type for value in side) for side in (old, new)]
    # An activation that both sides have as often comes later on one of them, and is not missing.
    applied = ["" if counted[0][kind] == counted[1][kind] else kind for kind in applied]
    if shared and any(applied) and applied[0] != applied[1]:
        return _activation(both, old, mine, its, shared[0])
    if mine.type == its.type:
        return CauseName.FORWARD_PASS, both, _of_one_type(old, new, mine, its)
    if mine.is_batch:
        seen = f"The old script computes its loss from {mine.name} of the batch, the new one does not. {both}"
        return CauseName.FORWARD_PASS, seen, f"Give the new script's model {mine.name} where it has {its.name}."
    if its.is_batch:
        entered = _entered(old, new, its)
        where = f"{entered.type} ({entered.name})" if entered else "its loss"
        seen = f"The new script computes {where} from a tensor of its batch that the old one does not use. {both}"
        change = f"Leave it out of {where}: Keras takes a third tensor of the batch for weights of the rows."
        return CauseName.FORWARD_PASS, seen, change
    change = f"Compare how {its.type} ({its.name}) of the new script and {mine.type} ({mine.name}) of the old one are computed."
    if shared:
        change = (
            f"{shared[0][1].name} goes into {its.type} ({its.name}) where the old script has {mine.type} ({mine.name}): "
            "it is too much, or that is missing."
        )
    return CauseName.FORWARD_PASS, both, change


def _entered(old: Side, new: Side, its: ForwardValue) -> ForwardValue | None:
    """Returns the first value in which a tensor of the new batch meets what both sides compute; None if it meets nothing of that kind."""
    equal = counterparts(new, old, strict=False)
    from_it = {next(place for place, one in enumerate(new) if one is its)}
    for place, value in enumerate(new):
        if place not in equal and from_it.intersection(value.inputs):
            if any(one in equal and new[one].numbers[0] > 1 for one in value.inputs):
                return value
            from_it.add(place)
    return None


def _order(
    old: Side, new: Side, values: tuple[ForwardValue, ForwardValue], moved: tuple[ForwardValue, ForwardValue]
) -> tuple[CauseName, str, str]:
    moved = _where_moved(old, new, moved)
    old_way, new_way = (_way(side, value) for side, value in zip((old, new), moved, strict=True))
    seen = (
        f"{values[0].type} ({values[0].name}) of the old script and {values[1].type} ({values[1].name}) of the new one get the same "
        f"elements in another order: old {old_way}; new {new_way}."
    )
    change = "Concatenate, transpose, reshape and slice in the old script's order: the weights that follow have it."
    return CauseName.ELEMENT_ORDER, seen, change


def _where_moved(old: Side, new: Side, moved: tuple[ForwardValue, ForwardValue]) -> tuple[ForwardValue, ForwardValue]:
    """Returns the first pair of values with the same elements in another order that a pair comes from."""
    while True:
        pairs = [(old[one], new[other]) for one in moved[0].inputs for other in moved[1].inputs]
        pairs = [pair for pair in pairs if _same_elements(*pair)]
        in_order = {one.name for one, other in pairs if _same_order(one, other)}
        further = [pair for pair in pairs if pair[0].name not in in_order and pair[0].numbers[0] > 1]
        is_moved_here = {moved[0].type, moved[1].type} & _MOVING and moved[0].type != moved[1].type
        if is_moved_here or not further:
            return moved
        moved = further[0]


def _way(side: Side, value: ForwardValue) -> str:
    """Spells a value, and the operations that moved its elements, the last one first."""
    text = f"{value.name} {_shape(value)}"
    for _ in range(4):
        if value.type not in _REORDERING or not value.inputs:
            break
        constants = _constants(value)
        text += f" by {value.type} of {some(_inputs(side, value))}" + (f" ({some(constants)})" if constants else "")
        value = side[value.inputs[0]]
    return text


def _not_given(old: Side, new: Side, mine: ForwardValue) -> list[str]:
    """Returns the tensors of the batch that the loop of the old script gets and nothing of the new one, such as the lengths of sequences."""
    given = [old[place] for place in sorted(_behind(old, mine))]
    batch = [one for one in given if one.is_batch and one.numbers]
    return [one.name for one in batch if not any(_same_elements(one, other) for other in new)]


def learned(side: Side) -> set[int]:
    """Returns the places of the values that depend on a variable."""
    found: set[int] = set()
    for place, value in enumerate(side):
        if value.is_variable or found.intersection(value.inputs):
            found.add(place)
    return found


def _behind(side: Side, value: ForwardValue) -> set[int]:
    """Returns the places of the values that a value is computed from, by way of none that a variable has a part in."""
    of_variables = learned(side)
    found: set[int] = set()
    waiting = [*value.inputs]
    while waiting:
        place = waiting.pop()
        if place not in found | of_variables:
            found.add(place)
            waiting += side[place].inputs
    return found


def _loop(both: str, mine: ForwardValue, its: ForwardValue, missing: list[str]) -> tuple[CauseName, str, str]:
    here, there = ({_CHOICES.get(kind, kind): number for kind, number in value.body.items()} for value in (mine, its))
    told = {kind for kind in {*here, *there} if kind in _ACTIVATIONS or kind == _CHOICE or kind.startswith("constant ")}
    kinds = sorted(kind for kind in told if here.get(kind, 0) != there.get(kind, 0))
    unequal = [f"{kind}: old {here.get(kind, 0)}, new {there.get(kind, 0)}" for kind in kinds]
    seen = f"{both} In the loop or function that computes them: {some(unequal, 6)}." if here and there and unequal else both
    name, change = (
        CauseName.RECURRENT,
        (
            "Compare the cell and how it is called: its activations, forget_bias, the axis of time, lengths of sequences, initial states. "
            "tf.nn.rnn_cell's LSTM cells add a forget_bias of 1 at each step, Keras' have it in the bias. A cell "
            "of the new script that adds it, too, is compared with --forget-bias '.*=0'."
        ),
    )
    if not _ACTIVATIONS & {*here, *there}:  # a loop of another kind, such as the sum over all paths of a CRF
        name, change = (
            CauseName.FORWARD_PASS,
            (
                "Compare the two loops: what they begin with, which steps they take, and tf.where, which keeps values behind a sequence's end."
            ),
        )
    if missing:
        seen += f" Only the old one is computed from {some(missing)} of the batch."
        change = f"Give the new script's layer {some(missing)}, e.g., as the mask of a sequence's lengths. {change}"
    return name, seen, change


def _activation(
    both: str, old: Side, mine: ForwardValue, its: ForwardValue, shared: tuple[ForwardValue, ForwardValue]
) -> tuple[CauseName, str, str]:
    met = _met(old, mine)
    if met is not None and any(word in its.type or word in its.name for word in _LOSSES):
        change = f"Give the new script's loss {met.type} ({met.name}) of {some(_inputs(old, met))}, as in the old script, not {shared[1].name}."
        return CauseName.FORWARD_PASS, both, change
    is_loss = [any(word in value.type or word in value.name for word in _LOSSES) for value in (mine, its)]
    if (its.type in _PROBABILITIES and is_loss[0]) or (mine.type in _PROBABILITIES and is_loss[1]):
        where = "outputs before" if is_loss[0] else "outputs after"
        change = f"Give the new script's loss the {where} {its.type if is_loss[0] else mine.type} (from_logits={is_loss[0]}), as in the old script."
        return CauseName.LOGITS, both, change
    wanted, present = (value.type if value.type in _ACTIVATIONS else "" for value in (mine, its))
    change = f"Apply {wanted or f'no {present}'} to {shared[1].name}, as the old script does to {shared[0].name}."
    return CauseName.ACTIVATION, both, change


def _met(side: Side, value: ForwardValue) -> ForwardValue | None:
    """Returns the first value that is computed from a value and from another one that depends on a variable; None without one."""
    of_variables = learned(side)
    following = (one for one in side if any(side[place] is value for place in one.inputs))
    return next((one for one in following if len(of_variables.intersection(one.inputs)) > 1), None)


def _of_one_type(old: Side, new: Side, mine: ForwardValue, its: ForwardValue) -> str:
    keys = dict.fromkeys(key for key in [*mine.settings, *its.settings] if not key.startswith("input "))
    settings = {key: (mine.settings.get(key), its.settings.get(key)) for key in keys}
    settings["constants"] = (some(_constants(mine)) or "none", some(_constants(its)) or "none")
    unequal = [f"{key}: old {here}, new {there}" for key, (here, there) in settings.items() if here != there]
    if unequal:
        return f"Give {its.name} what {mine.name} has: {some(unequal, 4)}."
    alone = [
        [
            _way(side, side[place])
            for place in value.inputs
            if not any(_same_elements(side[place], others[one]) for one in also.inputs)
        ]
        for side, value, others, also in ((old, mine, new, its), (new, its, old, mine))
    ]
    unequal = [f"{side} {some(ways)}" for side, ways in zip(("old", "new"), alone, strict=True) if ways]
    return f"Give {its.name} what {mine.name} is computed from{': ' + '; '.join(unequal) if unequal else ''}."


def _constants(value: ForwardValue) -> list[str]:
    return [text for key, text in value.settings.items() if key.startswith("input ")]


def _spell(value: ForwardValue, side: Side) -> str:
    inputs = _inputs(side, value)
    return f"{value.type} ({value.name}) {_shape(value)}" + (f" of {some(inputs)}" if inputs else "")


def _inputs(side: Side, value: ForwardValue) -> list[str]:
    """Returns the names of the variables and tensors that a value is computed from, without sizes and counters."""
    read = [side[place] for place in value.inputs]
    return [one.name for one in read if (one.is_variable and one.type != "Placeholder") or one.numbers[:1] > (1.0,)]


def _shape(value: ForwardValue) -> str:
    return "" if value.shape is None else f"[{', '.join('batch' if size is None else str(size) for size in value.shape)}]"
