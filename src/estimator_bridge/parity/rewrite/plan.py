"""The order for a comparison of an old script with its rewrite."""

from __future__ import annotations

import ast
import dataclasses
import os
from pathlib import Path

from estimator_bridge.errors import BridgeError
from estimator_bridge.script.run import Script
from estimator_bridge.script.source_warnings import script_sources

GIGABYTE = 1e9
FIRST_STEPS = 3  # each has an anchor behind it
_TENSORFLOWS = ("tensorflow", "tensorflow.compat.v2")


@dataclasses.dataclass(frozen=True)
class RewritePlan:
    """A rewrite and how to compare it.

    Attributes:
        script: New script.
        anchor: The old side's values are given to the new side at steps 1, 2, 3 and at each multiple of this.
        anchor_limit: Largest size of all anchors on disk, in bytes, with the new side's own values.
        given: Pairs that the user decided: variable of the old script -> variable of the new script.
        accept_order: True to pair variables of equal shape in order.
        adapt: ``module:function`` that turns a recorded batch into one of the new script; empty for none.
        forget_bias: Pattern of the scopes of LSTM cells -> their forget_bias; TensorFlow 1's default for others.
        is_free: True to give back no values.
        is_shaken: True to give back values with an error in their last place, which shows what rounding grows to.
        runs_eagerly: True to execute functions of the new script without graphs, in which their loops over batches cannot be seen.
        looks: True to record what the forward pass of the first step computes, and to end after it.
    """

    script: Script
    anchor: int = 10
    anchor_limit: float = 2 * GIGABYTE
    given: tuple[tuple[str, str], ...] = ()
    accept_order: bool = False
    adapt: str = ""
    forget_bias: tuple[tuple[str, float], ...] = ()
    is_free: bool = False
    is_shaken: bool = False
    looks: bool = False
    runs_eagerly: bool = False

    def has_anchor(self, step: int, every: int) -> bool:
        """Returns True if a step has an anchor.

        Args:
            step: Number of the step, from 1.
            every: Distance of the anchors.
        """
        return step <= FIRST_STEPS or step % every == 0


def anchor_distance(asked: int, size: int, budget: float, steps: int | None) -> int:
    """Returns the distance of anchors that fit into a budget.

    Args:
        asked: Distance that the user asked for.
        size: Bytes of one anchor.
        budget: Bytes of all anchors.
        steps: Number of training steps; None if it is not known.

    Example:
        >>> anchor_distance(10, size=100, budget=1000, steps=200), anchor_distance(10, 1, 1e9, 200)
        (29, 10)
    """
    free = int(budget // max(size, 1)) - FIRST_STEPS
    if steps is None or free >= steps // asked:
        return asked
    return max(asked, -(-steps // max(free, 1)))


def read_map(path: Path) -> tuple[tuple[str, str], ...]:
    """Reads a file of pairs, ``OLD = NEW`` a line; # starts a comment.

    Raises:
        BridgeError: The file cannot be read, or a line is no pair.
    """
    try:
        lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError("The file of --map cannot be read.", received=f"{path}: {error}", fix="Check the path.") from None
    pairs = []
    for number, line in enumerate(lines, 1):
        old, equals, new = (part.strip() for part in line.partition("="))
        if line and not (old and equals and new):
            raise BridgeError("A line of --map is no pair.", expected="OLD = NEW", received=f"{path}:{number}: {line}")
        if line:
            pairs.append((old, new))
    return tuple(pairs)


def check_keras(script: Script) -> None:
    """Refuses a script that uses another Keras than tf_keras, before anything runs.

    Raises:
        BridgeError: It does.
    """
    sources = script_sources(script.target, script.is_module)
    is_legacy = os.environ.get("TF_USE_LEGACY_KERAS", "0").lower() in {"1", "true"}
    is_legacy |= any("TF_USE_LEGACY_KERAS" in source.text for source in sources)
    for source in sources:
        found = _other_keras(source.text, is_legacy)
        if found:
            raise BridgeError(
                "The new script uses another Keras than tf_keras, which cannot be compared yet.",
                expected="tf_keras, or tf.keras with TF_USE_LEGACY_KERAS=1",
                received=f"{found} in {source.path}",
                fix="Import tf_keras as keras, or set the environment variable TF_USE_LEGACY_KERAS=1; or compare only final metrics: add --seeds 5.",
            )


def _other_keras(text: str, is_legacy: bool) -> str:
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return ""
    imported = [pair for node in nodes for pair in _imported(node)]
    tensorflows = {"tf", *(local for module, local in imported if module in _TENSORFLOWS)}  # tf: from a module of the user's
    names = [module for module, _ in imported]
    names += [
        "tensorflow.keras"
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr == "keras" and ast.unparse(node.value) in tensorflows
    ]
    roots = ("keras.",) if is_legacy else ("keras.", *(f"{name}.keras." for name in _TENSORFLOWS))
    return next((name for name in names if f"{name}.".startswith(roots)), "")


def _imported(node: ast.AST) -> list[tuple[str, str]]:
    """Returns the full name of each module or symbol that a statement imports, and the name that the script has for it."""
    if isinstance(node, ast.Import):
        return [(alias.name, alias.asname or alias.name) for alias in node.names]
    if isinstance(node, ast.ImportFrom) and not node.level:
        return [(f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names]
    return []
