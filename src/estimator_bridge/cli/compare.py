"""``estimator-bridge compare``: runs both paths side by side, prints a verdict and writes a report."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
import shlex
import signal
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.convert.checkpoint import add_forget_bias, forget_bias
from estimator_bridge.cli.parallel_plan import add_plan, beside_chief, plan_of
from estimator_bridge.cli.script_arguments import DIRECTORY, FILE, add_format, add_options, add_script, number, script_of
from estimator_bridge.errors import BridgeError, NotSupportedError, documentation
from estimator_bridge.parity.result import EXIT_CODES, ParityFinding, ParityResult, Thresholds

if TYPE_CHECKING:
    from estimator_bridge.parity.clusters.plan import ClusterPlan
    from estimator_bridge.parity.report.write import Summaries
    from estimator_bridge.parity.rewrite.plan import RewritePlan
    from estimator_bridge.parity.run import Recordings
    from estimator_bridge.script.run import Script

_EPILOG = """examples:
  estimator-bridge compare train.py
  estimator-bridge compare --out report train.py --train_steps=500
  estimator-bridge compare --steps 200 train.py
  estimator-bridge compare --free-run train.py
  estimator-bridge compare --replicas 2 --format json train.py
  estimator-bridge compare --mesh model=2 train.py
  estimator-bridge compare --reference-python old/bin/python train.py
  estimator-bridge compare --seeds 5 --margin 0.02 train.py
  estimator-bridge compare --resume recordings train.py
  estimator-bridge compare --worker 2 train.py
  estimator-bridge compare --seeds 5 --worker 2 --ps 1 train.py
  estimator-bridge compare --junit parity.xml --markdown parity.md train.py
  a script and its rewrite in tf_keras; both get the arguments, or the new one those of --new-args:
    estimator-bridge compare train.py keras_train.py --train_steps=500
    estimator-bridge compare --map pairs.txt --new-args='--epochs=2' train.py keras_train.py --train_steps=500
    estimator-bridge compare --adapt batches:to_keras train.py keras_train.py
  two SavedModels:
    estimator-bridge compare --requests requests.tfrecord export/1700000000 keras_export

exit code: 0 equal within the thresholds, 1 different, 2 if the two paths could not be compared; the report then says why.
With --seeds: 0 equivalent, 1 not equivalent, 2 not decided.
The script's model_dir is only read: both paths write to a temporary folder.
"""
_OUT = Path("parity-report")
_TASKS = {"worker": 0, "ps": 0, "evaluator": 1}
"""Jobs beside the chief, and their number in a cluster unless it is given."""
_FEWEST_ASYNCHRONOUS = 5  # seeds
_ELASTIC = documentation("how-to/elastic", "train-with-a-number-of-workers-that-changes")
_MOST = {"worker": 1000, "ps": 1000, "evaluator": 1}


def add_parser(verbs: Any) -> None:
    """Adds the command."""
    parser = verbs.add_parser(
        "compare",
        help="run a script on the legacy and on the modern path, and report whether both train alike",
        description="Runs a script on the legacy and on the modern path, from the same initial values and on the same batches.",
        epilog=_EPILOG,
    )
    out = parser.add_argument(
        "--out",
        type=Path,
        default=_OUT,
        metavar="DIR",
        help="folder to write report.html and report.json to (default: %(default)s)",
    )
    out.complete = DIRECTORY
    for flag, content in (
        ("--junit", "JUnit XML, with a test case for each part"),
        ("--markdown", "a short table in Markdown"),
    ):
        summary = parser.add_argument(flag, type=Path, metavar="FILE", help=f"also write the result as {content}")
        summary.complete = FILE
    parser.add_argument(
        "--free-run",
        action="store_true",
        help="let each path run the script's own input pipeline, shuffling included, instead of the same batches",
    )
    add_format(parser, "text: tables on stdout; json: report.json on stdout (default: %(default)s)")
    steps = number(int, "a whole number of 1 or more", 1)
    parser.add_argument(
        "--steps", type=steps, metavar="N", help="compare the first N training steps; Ctrl-C does the same with those so far"
    )
    record_dir = parser.add_argument(
        "--record-dir",
        type=Path,
        metavar="DIR",
        help="folder for the recorded batches and values (default: the temporary folder)",
    )
    record_dir.complete = DIRECTORY
    resumed = (
        "folder that keeps what each side records: sides that have ended there do not run again (after a crash, a kill or a "
    )
    resumed += "change of thresholds); a change of the input's files is not noticed"
    parser.add_argument("--resume", type=Path, metavar="DIR", help=resumed).complete = DIRECTORY
    original = (
        "interpreter of the script's original TensorFlow 1.12 to 1.15, which is recorded; both paths are compared with it"
    )
    parser.add_argument("--reference-python", default="", metavar="PYTHON", help=original)
    few = number(int, "a whole number of 3 or more", 3)
    by_seeds = "train both sides freely with S seeds, and test whether their final metrics are equivalent, instead of each step"
    parser.add_argument("--seeds", type=few, metavar="S", help=by_seeds)
    margin = "with --seeds: largest difference that counts as equivalent, as a share of the old metric (default: 0.01)"
    parser.add_argument("--margin", type=number(float, "a number of 0 or more"), metavar="M", help=margin)
    again = "run the modern side, or the rewrite, once more, and tell beside each difference what its two runs differ by"
    parser.add_argument("--noise", action="store_true", help=again)
    parser.add_argument("--keep", action="store_true", help="keep what both sides record, and their logs")
    add_plan(parser)
    add_options(parser, "--replicas", "--py2", "--tf-version", "--fetch-contrib", "--verbose")
    _add_thresholds(parser)
    _add_cluster(parser)
    _add_rewrite(parser)
    _add_exports(parser)
    add_script(parser)
    parser.tell_error = _tell_usage_error
    options = [action for action in parser._actions if action.option_strings and action.dest != "help"]
    defaults = {action.dest: (max(action.option_strings, key=len), action.default) for action in options}
    parser.set_defaults(execute=execute, defaults=defaults)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "a cluster", "with --worker or --ps, each path runs as a cluster on this machine: one chief, and the tasks named here"
    )
    for job, default in _TASKS.items():
        task = number(int, f"a whole number from 0 to {_MOST[job]}", 0, _MOST[job])
        group.add_argument(f"--{job}", type=task, metavar="N", help=f"number of {job} tasks (default: {default})")
    stall = "seconds without a step until a cluster is ended; ten times as long for what has no steps (default: 120)"
    group.add_argument(
        "--stall-timeout", type=number(float, "a number of seconds above 0", 1e-3), metavar="SECONDS", help=stall
    )


def _cluster_plan(arguments: argparse.Namespace) -> ClusterPlan | None:
    """Returns the cluster that the command line describes, if any.

    Raises:
        BridgeError: An option describes a cluster, but no other task than a chief; or TF_CONFIG has a cluster.
    """
    from estimator_bridge.cluster.tasks import TaskContext

    counts = {job: getattr(arguments, job) for job in _TASKS}
    context = TaskContext.of_this_process()
    jobs = (context.value.get("cluster") or {}) if context else {}
    if jobs:
        wanted = [f"--{job} {len(jobs[job])}" for job in _TASKS if jobs.get(job)]
        raise BridgeError(
            "TF_CONFIG is set: this process is one task of a cluster, and compare starts all of them.",
            expected="no TF_CONFIG",
            received=", ".join(f"{len(tasks)} {job}" for job, tasks in jobs.items()),
            fix=f"Unset TF_CONFIG{', and add ' if wanted else ''}{' '.join(wanted)}.",
        )
    if counts["worker"] or counts["ps"]:
        from estimator_bridge.parity.clusters.plan import ClusterPlan

        own = {job: default if counts[job] is None else counts[job] for job, default in _TASKS.items()}
        own["worker"] = beside_chief(plan_of(arguments), own["worker"])
        stall = {} if arguments.stall_timeout is None else {"stall": arguments.stall_timeout}
        return ClusterPlan({"chief": 1, **own}, **stall)
    named = [f"--{name}" for name, value in (*counts.items(), ("stall-timeout", arguments.stall_timeout)) if value is not None]
    if named:
        raise BridgeError(f"{named[0]} is for a cluster.", expected="--worker N or --ps N", fix=f"Leave out {named[0]}.")
    return None


def _add_rewrite(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "a rewrite",
        "if the first argument of SCRIPT is an existing .py or .ipynb file, it is a rewrite in tf_keras to compare with",
    )
    group.add_argument(
        "--new-args", metavar="ARGS", help="the rewrite's arguments, as --new-args='--epochs=2' (default: those of SCRIPT)"
    )
    pairs = "file with one pair a line: OLD_VARIABLE = NEW_VARIABLE"
    group.add_argument("--map", dest="map_file", type=Path, metavar="FILE", help=pairs)
    order = "pair variables of equal shape by words of their names, then in order of creation"
    group.add_argument("--accept-order", action="store_true", help=order)
    add_forget_bias(group)
    adapt = "function of the old features and labels (of a sparse tensor x: x#0, x#1, x#2) that returns a batch of the rewrite"
    group.add_argument("--adapt", default="", metavar="MODULE:FUNCTION", help=adapt)
    every = "give the old values to the rewrite at steps 1, 2, 3 and each K-th (default: %(default)s)"
    group.add_argument("--anchor", type=number(int, "a whole number of 1 or more", 1), default=10, metavar="K", help=every)
    limit = "largest size of these values on disk, with the rewrite's own; K grows to fit (default: %(default)g)"
    size = number(float, "a number of bytes, 0 or more", 0)
    group.add_argument("--anchor-limit", type=size, default=2e9, metavar="BYTES", help=limit)


def _add_exports(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "exports", "with --requests, SCRIPT and its first argument are the folders of two SavedModels"
    )
    kinds = "requests for both: .tfrecord of tf.train.Example, .npz of arrays by input, or .json as TensorFlow Serving takes it"
    group.add_argument("--requests", type=Path, metavar="FILE", help=kinds)
    name = "signature that answers (default: %(default)s)"
    group.add_argument("--signature", default="serving_default", metavar="NAME", help=name)


def _execute_exports(arguments: argparse.Namespace) -> int:
    """Compares two SavedModels and prints the result."""
    from estimator_bridge.parity.exports.comparison import compare_exports, render
    from estimator_bridge.parity.rewrite.plan import read_map

    if len(arguments.args) != 1:
        raise BridgeError(
            "--requests compares two SavedModels.",
            expected="compare --requests FILE OLD NEW, with two folders",
            received=shlex.join([arguments.script, *arguments.args]),
        )
    kept = ("requests", "signature", "map_file", "rel_diff", "abs_diff", "variable_abs_diff", "format")
    named = [
        flag for name, (flag, default) in arguments.defaults.items() if name not in kept and getattr(arguments, name) != default
    ]
    if named:
        raise BridgeError(f"{named[0]} is for scripts, and --requests compares two SavedModels.", fix=f"Leave out {named[0]}.")
    result = compare_exports(
        Path(arguments.script),
        Path(arguments.args[0]),
        arguments.requests,
        signature=arguments.signature,
        given=dict(read_map(arguments.map_file)) if arguments.map_file else {},
        thresholds=_thresholds(arguments),
    )
    sys.stdout.write(json.dumps(result.as_dict()) + "\n" if arguments.format == "json" else render(result))
    return result.exit_code


def _plan(script: Script, arguments: argparse.Namespace) -> tuple[Script, RewritePlan | None]:
    """Returns the old script and, if its first argument is a rewrite, the order to compare with it."""
    from estimator_bridge.compat.source.reading import check_path
    from estimator_bridge.parity.rewrite.plan import RewritePlan, read_map
    from estimator_bridge.script.run import Script

    named_file = Path(script.args[0]) if script.args and script.args[0].endswith((".py", ".ipynb")) else None
    if named_file:
        check_path(named_file)
    if not (named_file and named_file.is_file()):
        named = [flag for flag, value in _rewrite_options(arguments) if value]
        if named:
            raise BridgeError(
                f"{named[0]} is for a rewrite, and none is named.",
                expected="compare OLD.py NEW.py, NEW.py an existing file",
                received=" ".join([str(script), *script.args]),
                fix="Name the rewrite directly after the old script.",
            )
        if script.args and script.args[0].endswith(".py"):
            raise BridgeError(
                "There is no such rewrite.",
                expected="compare OLD.py NEW.py, NEW.py an existing file",
                received=script.args[0],
                fix="Correct its name. If it is an argument of the old script, let another one come first.",
            )
        return script, None
    named = [flag for flag, value in _one_script_options(arguments) if value]
    if named:
        raise BridgeError(f"{named[0]} is for one script on two paths, not for a rewrite.", fix=f"Leave out {named[0]}.")
    new, *rest = script.args
    rest = rest[1:] if rest[:1] == ["--"] else rest  # "--" between two scripts and their arguments belongs to neither
    own = rest if arguments.new_args is None else _words(arguments.new_args)
    given = read_map(arguments.map_file) if arguments.map_file else ()
    plan = RewritePlan(
        Script(new, tuple(own), verbose=arguments.verbose),
        arguments.anchor,
        arguments.anchor_limit,
        given,
        arguments.accept_order,
        arguments.adapt,
        forget_bias=tuple(forget_bias(text) for text in arguments.forget_bias),
    )
    return dataclasses.replace(script, args=tuple(rest)), plan


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        fix = "Close each quotation mark."
        raise BridgeError("--new-args cannot be read.", received=f"{text} ({error})", fix=fix) from error


def _one_script_options(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    return [
        ("--free-run", arguments.free_run),
        ("--replicas", arguments.replicas != 1),
        ("--reference-python", arguments.reference_python),
        *_parallel_options(arguments),
    ]


def _parallel_options(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    given = {name: getattr(arguments, name[2:]) for name in ("--plan", "--mesh", "--micro", "--elastic")}
    return [(flag, value is not None and value is not False) for flag, value in given.items()]


def _rewrite_options(arguments: argparse.Namespace) -> list[tuple[str, object]]:
    names = ("new_args", "map_file", "accept_order", "adapt", "forget_bias")
    return [(f"--{name.removesuffix('_file').replace('_', '-')}", getattr(arguments, name)) for name in names]


def _add_thresholds(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "thresholds", "a loss or metric counts as equal if its rel_diff OR its abs_diff is at most the threshold"
    )
    default = Thresholds()
    for option, value, limited in (
        ("--rel-diff", default.rel, "relative difference"),
        ("--abs-diff", default.abs, "absolute difference"),
        ("--variable-abs-diff", default.variable_abs, "absolute difference of final variables"),
    ):
        threshold, explanation = number(float, "a number of 0 or more"), f"largest {limited} (default: %(default)g)"
        group.add_argument(option, type=threshold, default=value, metavar="X", help=explanation)


def execute(arguments: argparse.Namespace) -> int:
    """Compares the paths, writes the report and prints the result."""
    try:
        return _execute(arguments)
    except BridgeError:
        raise
    except Exception:  # noqa: BLE001 -- Python would end with exit code 1, which says that the sides differ
        traceback.print_exc()
        return EXIT_CODES["not comparable"]


def _execute(arguments: argparse.Namespace) -> int:
    with _refusals_as_json(arguments):
        if arguments.requests is not None:
            return _execute_exports(arguments)
        script, plan, cluster = _asked(arguments)
    try:
        result = _compare(script, plan, cluster, arguments)
    except BaseException as error:  # also Ctrl-C and SIGTERM: no report may call a failed comparison equal
        _report_failure(_without_result(script, arguments, _reason(error), plan), arguments)
        raise
    _print(result, arguments)
    return result.exit_code


@contextlib.contextmanager
def _refusals_as_json(arguments: argparse.Namespace) -> Iterator[None]:
    """While active, a refusal is printed as JSON, too, if that is asked for; no report changes, since nothing was compared."""
    try:
        yield
    except BaseException as error:
        if arguments.format == "json":
            from estimator_bridge.script.run import Script

            script = Script(arguments.script, tuple(arguments.args), arguments.module)
            _print(_without_result(script, arguments, _reason(error)), arguments)
        raise


def _tell_usage_error(words: list[str], message: str) -> None:
    """Prints a mistake in the command line as JSON, if that is asked for."""
    if "--format=json" in words or ("--format", "json") in itertools.pairwise(words):
        from estimator_bridge.parity.report.summary import render_json

        finding = ParityFinding("calls", message)
        sys.stdout.write(render_json(ParityResult(tuple(words), "replay", "not comparable", Thresholds(), findings=(finding,))))


def _asked(arguments: argparse.Namespace) -> tuple[Script, RewritePlan | None, ClusterPlan | None]:
    """Returns the old script, the rewrite and the cluster.

    Raises:
        BridgeError: Options mean nothing together.
    """
    script, plan = _plan(script_of(arguments), arguments)
    cluster = _cluster_plan(arguments)
    if plan and cluster and arguments.seeds is None:
        raise BridgeError("A rewrite is compared with a cluster by final metrics only.", fix="Add --seeds 5.")
    _check_together(script, arguments, cluster)
    parallel = plan_of(arguments)
    if parallel.elastic or parallel.shares:
        raise NotSupportedError(
            "A plan whose steps take several batches cannot be compared: a step of the legacy path takes one.",
            expected="a plan without [elastic] and shares",
            fix=f"Leave them out. {_ELASTIC} says which training leaves the same checkpoints.",
        )
    parallel.check_workers(len(cluster.trainers) if cluster else 1)  # which the modern side would do after the legacy side
    _summaries(arguments)  # a mistake in them is no failed comparison
    return script, plan, cluster


def _check_together(script: Script, arguments: argparse.Namespace, cluster: ClusterPlan | None) -> None:
    """Refuses options that mean nothing together."""
    if cluster and arguments.replicas != 1:
        raise BridgeError("--replicas is for one process, and --worker for several.", fix="Leave out --replicas.")
    if cluster and cluster.counts.get("ps") and arguments.seeds is not None and arguments.seeds < _FEWEST_ASYNCHRONOUS:
        raise BridgeError(
            "Workers on parameter servers update in an order that differs from run to run, which few runs do not show.",
            expected=f"--seeds {_FEWEST_ASYNCHRONOUS} or more",
            received=f"--seeds {arguments.seeds}",
            fix=f"Give --seeds {_FEWEST_ASYNCHRONOUS}.",
        )
    of_one = [flag for flag in ("--noise", "--reference-python") if getattr(arguments, flag[2:].replace("-", "_"))]
    if cluster and of_one:
        raise BridgeError(f"{of_one[0]} is for scripts of one process.", fix=f"Leave out {of_one[0]}.")
    chosen = (
        *(("--free-run", arguments.free_run), ("--steps", arguments.steps), ("--noise", arguments.noise)),
        ("--reference-python", arguments.reference_python),
        *_parallel_options(arguments),
        *((flag, value) for flag, value in _rewrite_options(arguments) if flag != "--new-args"),
    )
    named = [flag for flag, value in chosen if value]
    if arguments.seeds is not None and named:
        raise BridgeError(
            f"{named[0]} is for a comparison step by step, and --seeds compares final metrics.",
            fix=f"Leave out {named[0]} or --seeds.",
        )
    if arguments.reference_python and (arguments.free_run or script.python2):
        raise BridgeError("--reference-python replays what the reference recorded.", fix="Leave out --free-run and --py2.")
    if arguments.resume is not None and (arguments.record_dir is not None or arguments.keep):
        raise BridgeError("--resume names the folder that is kept.", fix="Leave out --record-dir and --keep.")
    if arguments.seeds is None and arguments.margin is not None:
        raise BridgeError("--margin is for --seeds.", fix="Add --seeds S, or give thresholds by --rel-diff and --abs-diff.")


def _compare(
    script: Script, plan: RewritePlan | None, cluster: ClusterPlan | None, arguments: argparse.Namespace
) -> ParityResult:
    from estimator_bridge.parity.progress import progress_display
    from estimator_bridge.parity.report.write import write_report
    from estimator_bridge.parity.run import AGAIN, REFERENCE, Recordings, compare, compare_rewrite

    script.check()
    # A folder that cannot be written is reported before the comparison, and a killed comparison leaves this report.
    write_report(
        _without_result(script, arguments, "The comparison has not ended.", plan), arguments.out, _summaries(arguments)
    )
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that started processes are ended
    thresholds, recordings = _thresholds(arguments), Recordings(arguments.record_dir, arguments.keep, arguments.resume)
    if arguments.seeds is not None:
        result = _described(_compare_seeds(script, plan, cluster, arguments, recordings), script)
        write_report(result, arguments.out, _summaries(arguments))
        return result
    sides = (
        *([REFERENCE] if arguments.reference_python else []),
        *(("legacy", "modern") if plan is None else ("legacy", "new", "free")),
        *([AGAIN] if arguments.noise else []),
    )
    with progress_display(sides) as watch:
        common: dict[str, Any] = {"thresholds": thresholds, "recordings": recordings, "noise": arguments.noise, "watch": watch}
        common["steps"] = arguments.steps
        if plan is not None:
            result = compare_rewrite(script, plan, **common)
        else:
            result = compare(
                script,
                replaying=not arguments.free_run,
                replicas=arguments.replicas,
                reference=arguments.reference_python,
                cluster=cluster,
                parallel=plan_of(arguments),
                **common,
            )
    result = _described(result, script)
    write_report(result, arguments.out, _summaries(arguments))
    return result


def _compare_seeds(
    script: Script,
    plan: RewritePlan | None,
    cluster: ClusterPlan | None,
    arguments: argparse.Namespace,
    recordings: Recordings,
) -> ParityResult:
    from estimator_bridge.parity.progress import progress_display
    from estimator_bridge.parity.seeds import MARGIN, compare_seeds

    with progress_display(("legacy", "new" if plan else "modern")) as watch:
        return compare_seeds(
            script,
            plan,
            seeds=arguments.seeds,
            margin=MARGIN if arguments.margin is None else arguments.margin,
            replicas=arguments.replicas,
            cluster=cluster,
            recordings=recordings,
            watch=watch,
        )


def _summaries(arguments: argparse.Namespace) -> Summaries:
    """Returns the files beside the report."""
    from estimator_bridge.parity.report.write import HTML_NAME, JSON_NAME, Summaries

    named = [path.absolute() for path in (arguments.junit, arguments.markdown) if path is not None]
    if len({*named, *((arguments.out / name).absolute() for name in (HTML_NAME, JSON_NAME))}) < len(named) + 2:
        raise BridgeError(
            "Two outputs have the same path.",
            received=", ".join(map(str, named)),
            fix="Name other paths for --junit and --markdown.",
        )
    return Summaries(arguments.junit, arguments.markdown)


def _thresholds(arguments: argparse.Namespace) -> Thresholds:
    return Thresholds(arguments.rel_diff, arguments.abs_diff, arguments.variable_abs_diff)


def _without_result(
    script: Script, arguments: argparse.Namespace, reason: str, plan: RewritePlan | None = None
) -> ParityResult:
    """Returns the result of a comparison that failed for a reason."""
    from estimator_bridge.parity.run import environment

    result = ParityResult(
        (str(script), *([str(plan.script)] if plan else []), *script.args),
        "seeds" if arguments.seeds is not None else "free-run" if arguments.free_run else "replay",
        "not comparable",
        _thresholds(arguments),
        findings=(ParityFinding("calls", reason),),
        environment=environment(),
        new_side="new" if plan else "modern",
    )
    return _described(result, script)


def _described(result: ParityResult, script: Script) -> ParityResult:
    from estimator_bridge.parity.report.circumstances import circumstances

    return dataclasses.replace(result, environment={**circumstances(script.target), **result.environment})


def _reason(error: BaseException) -> str:
    if isinstance(error, BridgeError):
        return str(error)
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        return "The comparison was interrupted before it ended."
    return f"The comparison ended with {type(error).__name__}: {error}"


def _report_failure(result: ParityResult, arguments: argparse.Namespace) -> None:
    from estimator_bridge.parity.report.write import replace_report

    with contextlib.suppress(BridgeError):  # the failure itself is the one to show
        replace_report(result, arguments.out, _summaries(arguments))
    if arguments.format == "json":
        _print(result, arguments)


def _print(result: ParityResult, arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        from estimator_bridge.parity.report.summary import render_json

        sys.stdout.write(render_json(result))
        return
    from estimator_bridge.parity.report.terminal import print_report

    console = make_console()
    print_report(result, console)
    console.print(f"Report: {arguments.out / 'report.html'}", soft_wrap=True, highlight=False)
