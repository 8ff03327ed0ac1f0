"""``estimator-bridge convert config``: ConfigProto, RunConfig and TF_CONFIG to tf.config, tf.distribute and fit, and back."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import FILE
from estimator_bridge.errors import BridgeError

if TYPE_CHECKING:
    from estimator_bridge.compat.config.model import JobFacts
    from estimator_bridge.compat.config.reading.sources import Source
    from estimator_bridge.compat.config.report import Report

_EPILOG = """SOURCE is one of:
  a ConfigProto, as text or binary     session.pbtxt, session.pb
  a TF_CONFIG as JSON                  cluster.json, or env for the environment variable
  a RunConfig as JSON                  {"save_checkpoints_steps": 50, "session_config": {...}, "TF_CONFIG": {...}, ...}
  a script, with --from-script         it is RUN up to its Estimator's first call; partitioners are read from its text
  with --back: a ModernConfig as JSON or TOML, as this command prints it, a TF_CONFIG, or a plan.toml

examples:
  estimator-bridge convert config session.pbtxt
  estimator-bridge convert config --format python env > setup_distribution.py
  estimator-bridge convert config --format toml --allow device_fn run_config.json
  estimator-bridge convert config --format plan run_config.json > plan.toml
  estimator-bridge convert config --back --format python modern.toml
  estimator-bridge convert config --from-script train.py --model_dir=model

The result goes to stdout, the report to stderr; --format text prints the report and the Python code.
exit code: 0 everything was carried over, 1 something was dropped or needs a human (--allow NAME accepts it), 2 bad input.
"""


def add_parser(kinds: Any) -> None:
    """Adds the parser of this kind."""
    parser = kinds.add_parser(
        "config",
        help="convert ConfigProto, RunConfig and TF_CONFIG to tf.config and tf.distribute, or back",
        description="Converts a configuration, and reports for every field its counterpart and the reason.",
        epilog=_EPILOG,
    )
    _add_options(parser)
    source = parser.add_argument("source", metavar="SOURCE", help="a file, or env for the environment variable TF_CONFIG")
    source.complete = FILE
    args = parser.add_argument(
        "args", metavar="ARGS", nargs=argparse.REMAINDER, help="with --from-script: the script's own arguments"
    )
    args.required = False  # else it is named as missing together with SOURCE
    parser.set_defaults(execute=execute)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--back", action="store_true", help="convert from the modern to the legacy path")
    parser.add_argument(
        "--from-script",
        action="store_true",
        help="SOURCE is a script: RUN it up to the first call of its Estimator, and convert its RunConfig",
    )
    parser.add_argument(
        "--format",
        choices=("text", "json", "toml", "python", "plan"),
        default="text",
        help="format of the result; plan: a plan.toml with what TF_CONFIG and the partitioner say (default: text)",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="accept that this field is dropped; may be given several times",
    )
    kinds = ("config-proto", "tf-config", "run-config", "modern", "plan")
    parser.add_argument("--kind", choices=kinds, help="kind of SOURCE (default: detected)")
    parser.add_argument(
        "--tf-config",
        metavar="FILE",
        help="file with the job's TF_CONFIG, or env for the environment variable; values in SOURCE take precedence",
    )
    parser.add_argument("--resolve-hosts", action="store_true", help="check that the host names of a TF_CONFIG can be resolved")

    group = parser.add_argument_group("facts", "facts that no config contains; each makes the report more precise")
    group.add_argument("--gpus", type=_count, metavar="N", help="number of GPUs in each machine")
    group.add_argument(
        "--gpu-memory-mb",
        type=_megabytes,
        metavar="MB",
        help="memory of one GPU, which turns per_process_gpu_memory_fraction into a limit",
    )
    group.add_argument("--batch-size", type=_count, metavar="N", help="batch size of the dataset that input_fn returns")
    group.add_argument("--global-step", type=_count, metavar="N", help="global step of the checkpoint in model_dir")
    group.add_argument("--input-context", choices=("yes", "no"), help="whether input_fn takes an input_context")
    group.add_argument(
        "--auto-shard", choices=("AUTO", "FILE", "DATA", "HINT", "OFF"), help="AutoShardPolicy of the dataset of input_fn"
    )


def _count(text: str) -> int:
    """Reads an integer of 0 or more."""
    return int(text) if text.isdecimal() else _no_number(text)


def _megabytes(text: str) -> float:
    """Reads a finite number greater than 0."""
    return float(text) if math.isfinite(float(text)) and float(text) > 0 else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"invalid number: {text!r}")


def execute(arguments: argparse.Namespace) -> int:
    """Converts SOURCE, and prints the result and the report."""
    if arguments.args and not arguments.from_script:
        _options_behind(arguments)
    facts = _facts(arguments)
    if arguments.back and facts != type(facts)():
        raise BridgeError(
            "--back cannot be combined with facts, e.g. --gpus: only the other direction uses them.", fix="Drop the facts."
        )
    if arguments.back and arguments.format == "plan":
        raise BridgeError("--format plan prints a plan, which is no legacy configuration.", fix="Drop --back or --format plan.")
    if arguments.kind == "plan" or (arguments.kind is None and arguments.back and _is_plan(arguments.source)):
        return _plan_to_legacy(arguments)
    source = _read(arguments)
    return _to_legacy(source, arguments) if arguments.back else _to_modern(source, facts, arguments)


def _options_behind(arguments: argparse.Namespace) -> None:
    """Reads options after SOURCE; after a script they would be the script's own."""
    parser = argparse.ArgumentParser(prog="estimator-bridge convert config SOURCE", allow_abbrev=False, add_help=False)
    _add_options(parser)
    parser.parse_args(arguments.args, arguments)
    if arguments.from_script:
        fix = f"estimator-bridge convert config --from-script {arguments.source} ..."
        raise BridgeError("--from-script must precede the script.", fix=fix)


def _read(arguments: argparse.Namespace) -> Source:
    if arguments.from_script:
        from estimator_bridge.cli.convert.record_config import record

        others = {"--back": arguments.back, "--tf-config": arguments.tf_config, "--kind": arguments.kind,
                  "--resolve-hosts": arguments.resolve_hosts}  # fmt: skip
        for name in (name for name, given in others.items() if given):
            what, expected = f"{name} does not apply to a script.", f"--from-script without {name}"
            fix = "Set the environment variable TF_CONFIG." if name == "--tf-config" else f"Drop {name}."
            raise BridgeError(what, expected=expected, received=name, fix=fix)
        return record(arguments.source, arguments.args)
    from estimator_bridge.compat.config.reading.sources import read_source, with_tf_config

    source = read_source(arguments.source, arguments.kind, resolve_hosts=arguments.resolve_hosts)
    if arguments.tf_config is None:
        return source
    return with_tf_config(source, read_source(arguments.tf_config, "tf-config", resolve_hosts=arguments.resolve_hosts))


def _facts(arguments: argparse.Namespace) -> JobFacts:
    from estimator_bridge.compat.config.model import JobFacts

    names = [field.name for field in dataclasses.fields(JobFacts) if field.name != "input_context"]
    context = None if arguments.input_context is None else arguments.input_context == "yes"
    return JobFacts(**{name: getattr(arguments, name) for name in names}, input_context=context)


def _to_modern(source: Source, facts: JobFacts, arguments: argparse.Namespace) -> int:
    from estimator_bridge.compat.config.contradictions import ContradictionError, refuse_contradictions
    from estimator_bridge.compat.config.output.python import to_python
    from estimator_bridge.compat.config.settings import to_dict
    from estimator_bridge.compat.config.to_modern import to_modern

    if source.kind == "modern":
        what = f"{source.name} is a modern configuration already."
        raise BridgeError(what, expected="a legacy configuration", fix="Add --back.")
    try:
        refuse_contradictions(source.legacy)
        if arguments.format == "plan":
            from estimator_bridge.modern.parallel.plans.legacy_config import plan_tables

            tables, report = plan_tables(source.legacy)
            return _print(str, lambda: tables, report, arguments)
        config, report = to_modern(source.legacy, facts)
    except ContradictionError as error:
        places = ", ".join(source.where(name) for name in error.names)
        raise BridgeError(f"{places}: {error}", address=error.address) from None
    return _print(partial(to_python, config), partial(to_dict, config), report, arguments)


def _is_plan(source: str) -> bool:
    """Returns True for a TOML file with a table that only plans have."""
    from estimator_bridge.modern.parallel.plans.reading import names_tables

    return source.endswith(".toml") and names_tables(Path(source))


def _plan_to_legacy(arguments: argparse.Namespace) -> int:
    from estimator_bridge.compat.config.output.legacy import legacy_data, legacy_python
    from estimator_bridge.modern.parallel.plans.legacy_config import legacy_of
    from estimator_bridge.modern.parallel.plans.reading import read_plan

    if not arguments.back:
        raise BridgeError(
            f"{arguments.source} is a plan already.", expected="a legacy configuration", fix="Add --back to convert the plan."
        )
    legacy, report = legacy_of(read_plan(Path(arguments.source)))
    return _print(partial(legacy_python, legacy), partial(legacy_data, legacy), report, arguments)


def _to_legacy(source: Source, arguments: argparse.Namespace) -> int:
    from estimator_bridge.compat.config.output.legacy import legacy_data, legacy_python
    from estimator_bridge.compat.config.settings import from_dict
    from estimator_bridge.compat.config.to_legacy import to_legacy
    from estimator_bridge.compat.config.to_modern import to_modern

    if source.kind not in {"tf-config", "modern"}:
        what = f"{source.name} is a legacy configuration already."
        raise BridgeError(what, expected="a modern configuration, or a TF_CONFIG", fix="Drop --back.")
    modern = from_dict(source.modern) if source.kind == "modern" else to_modern(source.legacy)[0]
    legacy, report = to_legacy(modern)
    return _print(partial(legacy_python, legacy), partial(legacy_data, legacy), report, arguments)


def _print(python: Callable[[], str], data: Callable[[], Any], report: Report, arguments: argparse.Namespace) -> int:
    """Prints the result to stdout and the report for readers: to stderr, but with ``--format text`` to stdout, too.

    Args:
        python: Function that returns the result as Python.
        data: Function that returns the result as nested dictionaries.
        report: Report of the conversion.
        arguments: Arguments of the command.

    Returns:
        The exit code.
    """
    from estimator_bridge.compat.config.report import report_data, report_table

    if arguments.format in {"toml", "plan"}:
        import tomli_w

        text = tomli_w.dumps(data())
    elif arguments.format == "json":
        side = "legacy" if arguments.back else "modern"
        text = json.dumps({side: data(), "report": report_data(report, arguments.allow)}, indent=2) + "\n"
    else:
        text = python()
    code = report.exit_code(arguments.allow)
    if arguments.format != "json":
        console = make_console(stderr=arguments.format != "text")
        console.print(report_table(report, arguments.allow, expand=console.is_terminal))
    sys.stdout.write(("\n" if arguments.format == "text" else "") + text)
    return code
