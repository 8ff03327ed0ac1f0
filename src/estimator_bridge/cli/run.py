"""``estimator-bridge run``: executes an unmodified TensorFlow 1 script on either path."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.closed_streams import restore_streams
from estimator_bridge.cli.parallel_plan import add_plan, plan_of
from estimator_bridge.cli.script_arguments import FILE, add_options, add_script, script_of
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
  estimator-bridge run --path modern --micro 4 train.py --batch_size=256
  estimator-bridge run --path modern --mesh model=2 train.py
  estimator-bridge run -m trainer.task --job-dir /tmp/job
  estimator-bridge run --py2 train.py

exit code: the script's own; 2 when the request cannot be carried out.
"""
_MODERN_ONLY = {
    "replicas": "Add --path modern, or set RunConfig(train_distribute=...) in the script.",
    "jit_compile": "Add --path modern, or set global_jit_level in the script's session_config.",
    "mixed_precision": "Add --path modern, or set auto_mixed_precision_onednn_bfloat16 in the script's session_config.",
    "micro": "Add --path modern, or make the script's batch smaller.",
    "micro_statistics": "Add --path modern and --micro.",
    "mesh": "Add --path modern, or leave out the mesh.",
    "elastic": "Add --path modern, or leave out --elastic.",
    "plan": "Add --path modern, or leave out the plan.",
    "timeline": "Add --path modern and a pipeline, or leave out the timeline.",
}
_LEGACY_ONLY = {
    "v2_behavior": "Leave it out: on the modern path the model runs under TensorFlow 2's behaviour, and the script sees TensorFlow 1's."
}
"""Options of one path, and what to do if they are given on the other."""


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "run",
        help="run a TensorFlow 1 script unmodified on today's TensorFlow",
        description="Runs a TensorFlow 1 script as __main__, unmodified, on the installed TensorFlow.",
        epilog=_EPILOG,
    )
    add_options(parser, "--path", "--replicas", "--py2", "--tf-version", "--fetch-contrib", "--verbose")
    parser.add_argument(
        "--jit-compile",
        action="store_true",
        help="modern path: compile the gradients of each step with XLA; results are equal except for rounding",
    )
    parser.add_argument(
        "--mixed-precision",
        action="store_true",
        help="modern path, CPUs: compute each step in bfloat16 where TensorFlow considers it safe; results are approximate",
    )
    add_plan(parser)
    timeline = parser.add_argument(
        "--timeline",
        type=Path,
        metavar="FILE",
        help="modern path, with a pipeline: write when each stage computed which micro-batch of the last step: a Chrome trace (.json) or a "
        "picture (.svg)",
    )
    timeline.complete = FILE
    parser.add_argument(
        "--v2-behavior",
        action="store_true",
        help="legacy path: keep TensorFlow 2's behaviour and names, for scripts written for TensorFlow 2 and Estimators",
    )
    add_script(parser)
    parser.set_defaults(execute=execute)


def execute(arguments: argparse.Namespace) -> int:
    """Runs the script in this process and returns its exit code."""
    from estimator_bridge.script.tracebacks import run_as_python_does

    script = script_of(arguments)
    _check_path(arguments)
    arguments.plan = plan_of(arguments)
    script.check()
    restore_streams()  # a script ends when the reader of its output has left, as under Python
    return run_as_python_does(lambda: _run_and_report(script, arguments))


def _check_path(arguments: argparse.Namespace) -> None:
    other, fixes = ("modern", _MODERN_ONLY) if arguments.path == "legacy" else ("legacy", _LEGACY_ONLY)
    for name, fix in fixes.items():
        value = getattr(arguments, name)
        if value is True or value not in {None, False, 1}:
            flag = f"--{name.replace('_', '-')}"
            has_number = value is not True
            raise BridgeError(
                f"{flag} works only on the {other} path.",
                expected=f"--path {other} {flag}{' N' if has_number else ''}",
                received=f"--path {arguments.path} {flag}{f' {value}' if has_number else ''}",
                fix=fix,
            )


def _run_and_report(script: Script, arguments: argparse.Namespace) -> None:
    """Runs a script, and reports to a launcher an end that a restart would not change."""
    from estimator_bridge.script.run import run_legacy

    try:
        run_legacy(script) if arguments.path == "legacy" else _run_modern(script, arguments)
    except (NotSupportedError, SystemExit) as error:  # unlike e.g. the loss of another worker
        if (rendezvous := Rendezvous.of_this_process()) and (reason := _find_final_reason(error, rendezvous)):
            with contextlib.suppress(OSError):  # a full disk must not hide this error
                rendezvous.report_final(reason)
        raise


def _find_final_reason(error: NotSupportedError | SystemExit, rendezvous: Rendezvous) -> str | None:
    if isinstance(error, NotSupportedError):
        return "the request is not supported, so a restart would fail the same way"
    # An exit code that is raised while an exception is handled may be due to that one, which a restart may not meet.
    is_own_code = error.code not in {None, 0, EXIT_CODE} and error.__context__ is None
    context = TaskContext.of_this_process()
    has_trained = context is not None and context.task is not None and rendezvous.has_trained(context.task)
    return "its script gave this exit code after the training" if is_own_code and has_trained else None


def _run_modern(script: Script, arguments: argparse.Namespace) -> None:
    from estimator_bridge.script.run import run_modern

    engines: list[ModernEngine] = []

    def make_engine() -> ModernEngine:
        from estimator_bridge.modern.engine import ModernEngine

        own = {flag: getattr(arguments, flag) for flag in ("jit_compile", "mixed_precision", "timeline")}
        engines.append(ModernEngine(arguments.replicas, **own, plan=arguments.plan))
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
