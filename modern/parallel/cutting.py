"""Stages of a pipeline: the forward operations of a model in the order of their creation, cut where the computation balances.

Every operation reads what was created before it, so each place in this order divides a model into two stages.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator_bridge.errors import BridgeError, NotSupportedError
from estimator_bridge.modern.graph.fragments import Operation, Tensor, is_copied, is_source, upstream
from estimator_bridge.modern.graph.model_graph import ModelGraph
from estimator_bridge.modern.graph.stages import Plan
from estimator_bridge.modern.parallel.assignment import Assignment, Unit, find_units
from estimator_bridge.modern.parallel.balance import balanced
from estimator_bridge.modern.parallel.mesh import Mesh
from estimator_bridge.modern.parallel.micro_batches.reductions import losses_of, trained

_SLACK = 0.15
"""How far a cut may be from an even share, as a part of that share."""

logging = tf.compat.v1.logging


@dataclasses.dataclass(frozen=True)
class Cut:
    """The stages of a pipeline.

    Attributes:
        stages: Name of a forward operation that depends on the batch -> number of its stage, from 0.
        variables: Name of a variable -> number of the stage that uses it first.
        begins: Name of the first operation of each stage.
        shares: Share of each stage in the computation of the forward operations.
    """

    stages: Mapping[str, int]
    variables: Mapping[str, int]
    begins: Sequence[str]
    shares: Sequence[float]

    def assign(self, mesh: Mesh, model: ModelGraph, step: Plan) -> Assignment:
        """Returns the devices of the variables; those of a stage are divided over its devices by their bytes."""
        reasons: dict[str, str] = {}
        devices: dict[str, str] = {}
        of_stages: dict[int, list[Unit]] = {}
        for unit in find_units(model, step):
            found = [self.variables[one.op.name] for one in unit.members if one.op.name in self.variables]
            if found:
                of_stages.setdefault(min(found), []).append(unit)
        groups = mesh.stages(len(self.begins))
        for stage, units in of_stages.items():
            numbers = balanced([unit.size for unit in units], [0] * len(groups[stage]))
            for unit, number in zip(units, numbers, strict=True):
                reasons[unit.first.op.name] = f"stage {stage}"
                devices |= {one.op.name: groups[stage][number] for one in unit.members}
        return Assignment(list(itertools.chain.from_iterable(of_stages.values())), devices, reasons)


def cut(model: ModelGraph, step: Plan, number: int, at: Sequence[str] = ()) -> Cut:
    """Cuts a model into the stages of a pipeline.

    Args:
        model: Training graph.
        step: Training step of the graph.
        number: Number of stages.
        at: Operation or scope at which each stage but the first begins. Without names, each stage computes an even share, as far as
            shapes tell; near an even share, the end of a scope is preferred, and then the place where the fewest bytes cross.

    Raises:
        BridgeError: A name begins no stage.
        NotSupportedError: The model cannot be cut into so many stages.
    """
    losses = losses_of(model, trained(model, step.operations - {update.op for update in step.updates}))
    forward = sorted(upstream([loss.op for loss in losses], is_source) & step.operations, key=lambda op: op._id)
    varying, variables_of = _varying(forward)
    totals = list(itertools.accumulate(map(_cost, varying)))
    trainable = {variable.op.name for variable in model.variables() if variable.trainable}
    first_uses = list({name: place for place, op in reversed(list(enumerate(varying))) for name in variables_of[op]}.items())
    uses = sorted({place for name, place in first_uses if name in trainable})
    starts = [0, *(_named(varying, at) if at else _balanced(varying, totals, number, uses))]
    stages = {op.name: sum(place >= start for start in starts) - 1 for place, op in enumerate(varying)}
    variables = {name: stages[varying[place].name] for name, place in first_uses}
    ends = [totals[start - 1] for start in starts[1:]] + totals[-1:]
    shares = [(end - begin) / totals[-1] for begin, end in zip([0, *ends], ends, strict=False)]
    made = Cut(stages, variables, [varying[start].name for start in starts], shares)
    _check(made, trainable, number)
    return made


def _check(made: Cut, trainable: Collection[str], number: int) -> None:
    held = {stage for name, stage in made.variables.items() if name in trainable}
    for stage, (begin, share) in enumerate(zip(made.begins, made.shares, strict=True)):
        if stage not in held:
            raise NotSupportedError(
                f"Stage {stage} of the pipeline, which begins at {begin!r}, has no variable to train.",
                expected="stages that each train something",
                received=f"{number} stages, {len(held)} of which have variables",
                fix=f"{_fewer(len(held))}, or say by at = [...] in [pipeline] of a plan where they begin.",
            )
        logging.info("Stage %d of the pipeline begins at %r and has %.0f %% of the computation.", stage, begin, 100 * share)
    if max(made.shares) * number > 1.5:
        logging.warn(
            f"The stages of the pipeline are uneven: one has {max(made.shares):.0%} of the computation, and an even share is "
            f"{1 / number:.0%}. The others wait for it. Take fewer stages, or say by at = [...] in [pipeline] of a plan where they begin."
        )


def _varying(forward: Sequence[Operation]) -> tuple[list[Operation], Mapping[Operation, Sequence[str]]]:
    """Returns the operations that depend on the batch, and the variables that each reads, by way of others that do not."""
    varying: dict[Operation, None] = {}
    behind: dict[Operation, list[str]] = {}
    for op in forward:
        sources = [tensor.op for tensor in op.inputs]
        names = [one.name for one in sources if one.type == "VarHandleOp"]
        names += [name for one in sources if one not in varying for name in behind.get(one, [])]
        behind[op] = list(dict.fromkeys(names))
        if any((is_source(one) and one.type != "VarHandleOp") or one in varying for one in sources):
            varying[op] = None
    return list(varying), behind


def _named(varying: Sequence[Operation], names: Sequence[str]) -> list[int]:
    starts = [0]
    for name in names:
        found = [place for place, op in enumerate(varying) if op.name == name or op.name.startswith(f"{name}/")]
        if not found or found[0] <= starts[-1]:
            known = list(dict.fromkeys(_scope(op) or op.name for op in varying))
            problem = (
                f"begins no later than the name before it, at {varying[found[0]].name!r}"
                if found
                else "is no forward operation"
            )
            raise BridgeError(
                f"The plan's {name!r} {problem}.",
                expected="names of operations or scopes, in the order of the model",
                received=f"at = {list(names)}",
                fix=f"Name others, e.g. {', '.join(difflib.get_close_matches(name, known, n=3, cutoff=0.2) or known[-3:])}.",
            )
        starts.append(found[0])
    return starts[1:]


def _balanced(varying: Sequence[Operation], totals: Sequence[float], number: int, uses: Sequence[int]) -> list[int]:
    """Returns the place of the first operation of each stage but the first, given the places where new variables are used."""
    if len(uses) < number:
        raise NotSupportedError(
            "The model has too few operations with variables for a pipeline.",
            expected=f"{number}, one for each stage",
            received=len(uses),
            fix=f"{_fewer(len(uses))}.",
        )
    crossing = _crossing(varying)
    starts: list[int] = []
    for stage in range(1, number):
        want, slack = totals[-1] * stage / number, totals[-1] * _SLACK / number
        before = next(place for place in uses if place >= (starts[-1] if starts else 0))
        free = range(before + 1, uses[stage - number] + 1)  # each stage needs a variable
        near = [place for place in free if abs(totals[place - 1] - want) <= slack]

        def rank(place: int, want: float = want) -> tuple[Any, ...]:
            return _shared_scopes(varying[place - 1], varying[place]), crossing[place], abs(totals[place - 1] - want)

        starts.append(min(near, key=rank) if near else min(free, key=lambda place: abs(totals[place - 1] - want)))
    return starts


def _fewer(most: int) -> str:
    """Returns words for the nearest plan with at most so many stages."""
    return f"Take pipeline={most}" if most > 1 else "Train on one device, or on several by model=2"


def _scope(op: Operation) -> str:
    return str(op.name.rpartition("/")[0])


def _shared_scopes(one: Operation, other: Operation) -> int:
    pairs = zip(one.name.split("/")[:-1], other.name.split("/")[:-1], strict=False)
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _crossing(varying: Sequence[Operation]) -> list[float]:
    """Returns the bytes, for each row of a batch, that a cut before each operation would send."""
    places = {op: place for place, op in enumerate(varying)}
    change = [0.0] * (len(varying) + 1)
    for op, place in places.items():
        for tensor in op.outputs:
            last = max((places[user] for user in tensor.consumers() if user in places), default=place)
            if last > place:
                size = _elements(tensor) * max(tensor.dtype.size or 0, 1)
                change[place + 1] += size
                change[last + 1] -= size
    return list(itertools.accumulate(change))


def _cost(op: Operation) -> float:
    """Returns the multiplications and additions of an operation, for each row of a batch if the graph does not fix its size."""
    results = sum(_elements(tensor) for tensor in op.outputs if tensor.dtype.is_floating)
    if op.type == "MatMul":
        return 2 * results * _length(op.inputs[0], 0 if op.get_attr("transpose_a") else 1)
    if op.type.startswith("BatchMatMul"):
        return 2 * results * _length(op.inputs[0], -2 if op.get_attr("adj_x") else -1)
    if op.type.startswith(("Conv", "DepthwiseConv")) and len(op.inputs) > 1 and op.inputs[1].shape.rank:
        filters = op.inputs[1]
        return 2 * results * _elements(filters) / (_length(filters, -2) if "Depthwise" in op.type else _length(filters, -1))
    return 0.0 if is_copied(op) else float(results)


def _elements(tensor: Tensor) -> float:
    rank = tensor.shape.rank
    return math.prod(length or 1 for length in tensor.shape.as_list()) if rank is not None else 1.0


def _length(tensor: Tensor, axis: int) -> int:
    return (tensor.shape[axis] or 1) if tensor.shape.rank else 1
