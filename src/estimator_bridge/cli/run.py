"""``estimator-bridge run``: executes a TensorFlow 1 script unmodified, on either path."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.closed_streams import restore_streams
from estimator_bridge.cli.script_arguments import add_path, add_python2, add_replicas, add_script, add_verbose, script_of
from estimator_bridge.cluster.preemption import EXIT_CODE
from estimator_bridge.cluster.rendezvous import Rendezvous
from estimator_bridge.cluster.tasks import TaskContext
from estimator_bridge.errors import BridgeError, NotSupportedError

if TYPE_CHECKING:
    from estimator_bridge.modern.engine import ModernEngine
    from estimator_bridge.script.run import Script

_EPILOG = """examples:
  estimator-bridge run train.py --model_dir=/tmp/model --train_steps=1000
  estimator-bridge run --path modern train.py --model_dir=/tmp/model
  estimator-bridge run --path modern --replicas 2 train.py
  estimator-bridge run -m trainer.task --job-dir /tmp/job
  estimator-bridge run --py2 train.py

exit code: the script's own; 2 when the request cannot be carried out.
"""
_MODERN_ONLY = {"jit_compile": "global_jit_level", "mixed_precision": "auto_mixed_precision_onednn_bfloat16"}
"""Flags, and what a ConfigProto has in their place."""


def add_parser(verbs: Any) -> None:
    """Adds the verb."""
    parser = verbs.add_parser(
        "run",
        help="run a TensorFlow 1 script unmodified on today's TensorFlow",
        description="Runs a TensorFlow 1 script as __main__, unmodified, on the installed TensorFlow.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_path(parser)
    add_replicas(parser)
    add_python2(parser)
    add_verbose(parser)
    parser.add_argument(
        "--jit-compile",
        action="store_true",
        help="modern path: have XLA compile the gradients of each step; results are equal but for rounding",
    )
    parser.add_argument(
        "--mixed-precision",
        action="store_true",
        help="modern path, CPUs: compute each step in bfloat16 where TensorFlow deems it safe; results are approximate",
    )
    parser.add_argument(
        "--v2-behavior",
        action="store_true",
        help="legacy path: the script is written for TensorFlow 2 and Estimators: keep TensorFlow 2's behaviour and names",
    )
    add_script(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Runs the script in this process; its exit code is ours."""
    from estimator_bridge.script.tracebacks import run_as_python_does

    script = dataclasses.replace(script_of(arguments), v2_behavior=arguments.v2_behavior)
    if arguments.path == "legacy" and arguments.replicas != 1:
        raise BridgeError(
            "--replicas belongs to the modern path.",
            expected="--path modern --replicas N",
            received=f"--path legacy --replicas {arguments.replicas}",
            fix="Add --path modern, or set RunConfig(train_distribute=...) in the script.",
        )
    for name, instead in _MODERN_ONLY.items():
        if arguments.path == "legacy" and getattr(arguments, name):
            flag = f"--{name.replace('_', '-')}"
            raise BridgeError(
                f"{flag} belongs to the modern path.",
                expected=f"--path modern {flag}",
                received=f"--path legacy {flag}",
                fix=f"Add --path modern, or set {instead} in the script's session_config.",
            )
    if arguments.path == "modern" and arguments.v2_behavior:
        raise BridgeError(
            "--v2-behavior belongs to the legacy path.",
            expected="--path legacy --v2-behavior",
            received="--path modern --v2-behavior",
            fix="Leave it out: on the modern path the model runs under TensorFlow 2's behaviour, and the script sees TensorFlow 1's.",
        )
    script.check()
    restore_streams()  # an endless script ends where its reader has left, as under Python
    run = _run_legacy if arguments.path == "legacy" else _run_modern
    return run_as_python_does(lambda: _run_and_report(run, script, arguments))


def _run_and_report(run: Callable[[Script, argparse.Namespace], None], script: Script, arguments: argparse.Namespace) -> None:
    """Runs a script, and reports to a launcher an end that a restart would not change."""
    try:
        run(script, arguments)
    except (NotSupportedError, SystemExit) as error:  # unlike e.g. the loss of another worker
        if (rendezvous := Rendezvous.of_this_process()) and (reason := _final_reason(error, rendezvous)):
            with contextlib.suppress(OSError):  # a full disk must not hide this error
                rendezvous.report_final(reason)
        raise


def _final_reason(error: NotSupportedError | SystemExit, rendezvous: Rendezvous) -> str | None:
    if isinstance(error, NotSupportedError):
        return "the request is not supported, so a restart would fail the same way"
    # An exit code that is raised while an exception is handled may be due to that one, which a restart may not meet.
    is_own_code = error.code not in {None, 0, EXIT_CODE} and error.__context__ is None
    context = TaskContext.of_this_process()
    has_trained = context is not None and context.task is not None and rendezvous.has_trained(context.task)
    return "its script gave this exit code after the training" if is_own_code and has_trained else None


def _run_legacy(script: Script, arguments: argparse.Namespace) -> None:
    from estimator_bridge.script.run import run_legacy

    run_legacy(script)


def _run_modern(script: Script, arguments: argparse.Namespace) -> None:
    from estimator_bridge.script.run import run_modern

    engines: list[ModernEngine] = []

    def make_engine() -> ModernEngine:
        from estimator_bridge.modern.engine import ModernEngine

        flags = {"jit_compile": arguments.jit_compile, "mixed_precision": arguments.mixed_precision}
        engines.append(ModernEngine(arguments.replicas, **flags))
        return engines[0]

    try:
        run_modern(script, make_engine)
    except SystemExit as error:
        if error.code:
            raise
    if not engines[0].calls:
        raise BridgeError(
            "The script called no Estimator, so nothing ran on the modern path.",
            expected="train, evaluate, predict, train_and_evaluate or export_saved_model of a tf.estimator.Estimator",
            fix="Use --path legacy for scripts without an Estimator.",
        )
