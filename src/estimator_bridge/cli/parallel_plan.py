"""The options of a parallel training: a plan, or a mesh and micro-batches."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_bridge.cli.script_arguments import FILE, number
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from estimator_bridge.modern.parallel.plans.plan import ParallelPlan


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Adds --plan, --mesh, --micro, --micro-statistics and --elastic."""
    plan = parser.add_argument(
        "--plan", type=Path, metavar="FILE", help="modern path: plan.toml with a mesh, micro-batches, and devices for variables"
    )
    plan.complete = FILE  # type: ignore[attr-defined]
    parser.add_argument(
        "--mesh",
        metavar="AXES",
        help="modern path: model=N holds the model on N devices (GPUs, or virtual CPUs without any), balanced by bytes; pipeline=N cuts it "
        "into N stages, which compute different micro-batches at the same time",
    )
    parser.add_argument(
        "--micro",
        type=number(int, "a whole number of 1 or more", 1),
        metavar="K",
        help="modern path: compute each batch in K micro-batches, one after the other, in less memory; the update is that of the whole "
        "batch (default: 1)",
    )
    parser.add_argument(
        "--micro-statistics",
        action="store_true",
        help="with --micro: let batch norm, and all else that mixes the rows of a batch, see one micro-batch at a time; results differ",
    )
    parser.add_argument(
        "--elastic",
        type=_range,
        metavar="MIN:MAX",
        help="modern path, with --micro K: a step takes K whole batches, however many workers there are; launch goes on with fewer if it "
        "loses one, and with more at SIGUSR1",
    )


def _range(text: str) -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and 0 < int(least) <= int(most)):
        raise argparse.ArgumentTypeError(f"expected MIN:MAX, e.g. 1:4, received {text!r}")
    return int(least), int(most)


def beside_chief(plan: ParallelPlan, workers: int) -> int:
    """Returns the number of workers beside the chief, who is one of the workers that a mesh counts.

    Args:
        plan: Plan.
        workers: Number of workers that the user asks for: those of the mesh, or those beside the chief.
    """
    return workers - 1 if plan.data == workers > 1 else workers


def plan_flags(arguments: argparse.Namespace) -> list[str]:
    """Returns the options of a plan as they were given, for another command."""
    elastic = ":".join(map(str, arguments.elastic)) if arguments.elastic else None
    given = {"--plan": arguments.plan, "--mesh": arguments.mesh, "--micro": arguments.micro, "--elastic": elastic}
    flags = [part for flag, value in given.items() if value is not None for part in (flag, str(value))]
    return [*flags, *(["--micro-statistics"] if arguments.micro_statistics else [])]


def plan_of(arguments: argparse.Namespace) -> ParallelPlan:
    """Returns the plan that the command line describes.

    Raises:
        BridgeError: The plan cannot be read, or other options contradict it.
    """
    from estimator_bridge.modern.parallel.plans.plan import NOT_PARALLEL
    from estimator_bridge.modern.parallel.plans.reading import checked, of_mesh, read_plan

    if arguments.plan is None:
        mesh = of_mesh(arguments.mesh) if arguments.mesh is not None else NOT_PARALLEL
        own = {"micro": arguments.micro or 1, "micro_statistics": arguments.micro_statistics, "elastic": arguments.elastic}
        return checked(dataclasses.replace(mesh, **own), "--elastic")
    given = {
        "--mesh": arguments.mesh is not None,
        "--micro": arguments.micro is not None,
        "--micro-statistics": arguments.micro_statistics,
        "--elastic": arguments.elastic is not None,
    }
    for flag, is_given in given.items():
        if is_given:
            raise BridgeError(
                f"{flag} and --plan say the same twice.",
                expected="one of them",
                fix=f"Leave out {flag}, or write it into the plan.",
            )
    return read_plan(arguments.plan)
