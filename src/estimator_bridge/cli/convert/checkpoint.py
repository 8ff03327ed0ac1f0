"""``estimator-bridge convert checkpoint``: converts checkpoints of either kind, Keras files and SavedModels."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import logging
import sys
from pathlib import Path
from typing import Any

from estimator_bridge.cli.consoles import make_console
from estimator_bridge.cli.script_arguments import FILE, add_format
from estimator_bridge.errors import BridgeError

_logger = logging.getLogger(__name__)
_KINDS = ("bilingual", "name-based", "object-based", "keras-weights", "keras", "saved-model")

_EPILOG = """examples:
  for both the modern path's own model and the old graph:
    estimator-bridge convert checkpoint old/model.ckpt-1000 new/model.ckpt-1000
  for a Keras model: a .keras file, a SavedModel, a config in JSON, a function that makes it, or a checkpoint of it:
    estimator-bridge convert checkpoint old/model.ckpt-1000 new/model.ckpt-1000 --like model.keras
    estimator-bridge convert checkpoint old/model.ckpt-1000 new/model.ckpt-1000 --like trainer.model:make --optimizer-family new
  as a Keras file:
    estimator-bridge convert checkpoint old/model.ckpt-1000 model.keras --to keras --like config.json
    estimator-bridge convert checkpoint old/model.ckpt-1000 exported --to saved-model --like saved_model_folder
  back, for the old graph:
    estimator-bridge convert checkpoint keras/ckpt-1000 old/model.ckpt-1000 --to name-based --like old/model.ckpt-0
    estimator-bridge convert checkpoint model.keras old/model.ckpt-1000 --to name-based --like old/model.ckpt-0
    estimator-bridge convert checkpoint m.weights.h5 old/model.ckpt-7 --to name-based --like config.json --like old/model.ckpt-0
  other names, other partitions:
    estimator-bridge convert checkpoint a/model.ckpt-7 b/model.ckpt-7 --to name-based --rename '^tower_0/=tower/'
    estimator-bridge convert checkpoint a/model.ckpt-7 b/model.ckpt-7 --to name-based --partition 'embeddings=4'
    estimator-bridge convert checkpoint a/model.ckpt-7 b/model.ckpt-7 --to name-based --drop '/Adam(_1)?$'

--like module:function imports the module and calls the function, which is your own code; nothing else here runs your code.

exit code: 0 converted, 1 some variables have no counterpart and nothing was written, 2 the request cannot be carried out.
The source is only read. Data files are hard-linked: never change one of them in place, or use --copy.
"""


def add_parser(kinds: Any) -> None:
    """Adds the parser of ``convert checkpoint``."""
    parser = kinds.add_parser(
        "checkpoint",
        help="convert a checkpoint, optimizer state included",
        description="Converts a checkpoint by rewriting its index; data files are shared. Keras' own files are written by Keras.",
        epilog=_EPILOG,
    )
    source = "a prefix, a model_dir, a SavedModel, a V1 checkpoint, or a Keras file: .keras, .weights.h5, .h5"
    target = "prefix of the new checkpoint, or Keras' file or folder"
    rules = "file with rules for --rename, one per line; # starts a comment"
    paths = [parser.add_argument("source", metavar="SOURCE", help=source)]
    paths.append(parser.add_argument("target", metavar="TARGET", type=Path, help=target))
    parser.add_argument(
        "--to",
        choices=_KINDS,
        help="kind of TARGET; bilingual: name-based and object-based at once (default: keras for a TARGET that ends in .keras, "
        "keras-weights for .weights.h5, else bilingual)",
    )
    like = (
        "Keras model or checkpoint whose object graph or variable names to write; may be given twice, for SOURCE and for TARGET"
    )
    paths.append(parser.add_argument("--like", action="append", default=[], metavar="MODEL", help=like))
    paths.append(parser.add_argument("--rename-file", type=Path, metavar="FILE", help=rules))
    for path in paths:
        path.complete = FILE
    _add_names(parser)
    _add_optimizer_and_writing(parser)
    add_format(parser, "format of the report (default: %(default)s)")
    parser.set_defaults(execute=execute, copy=False)


def _add_names(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("names", "regular expressions; each option may be given several times")
    add_repeated = functools.partial(group.add_argument, action="append", default=[])
    add_repeated("--rename", metavar="REGEX=REPLACEMENT", help="rename TF1's variables")
    add_repeated("--drop", metavar="REGEX", help="leave variables out")
    add_repeated("--partition", metavar="REGEX=N", help="cut variables into N slices; 1 joins their slices")
    group.add_argument("--use-averages", action="store_true", help="give variables the values of their moving averages")
    group.add_argument(
        "--swap-averages", action="store_true", help="exchange variables and averages, if a swapping_saver wrote SOURCE"
    )
    add_repeated("--map", dest="given", metavar="TF1=KERAS", help="pair a variable of TF1 with one of Keras")
    group.add_argument("--accept-order", action="store_true", help="pair variables of equal shape in their order of creation")
    add_forget_bias(group)
    group.add_argument("--allow-unmatched", action="store_true", help="write even if some variables have no counterpart")


def _add_optimizer_and_writing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("optimizer")
    group.add_argument("--learning-rate", type=float, metavar="X", help="learning rate that Keras' slots of Momentum contain")
    group.add_argument("--optimizer", metavar="NAME", help="TF1's name of the optimizer, if its slots do not identify it")
    family = "legacy: tf_keras.optimizers.legacy, which follow TF1 with sparse gradients; new: the newer Keras optimizers"
    group.add_argument("--optimizer-family", choices=("legacy", "new"), help=family)
    group = parser.add_argument_group("writing")
    how = group.add_mutually_exclusive_group()
    how.add_argument("--link", dest="copy", action="store_false", help="hard-link data files where possible (the default)")
    how.add_argument("--copy", action="store_true", help="copy data files")
    group.add_argument("--overwrite", action="store_true", help="replace an existing checkpoint")
    group.add_argument("--dry-run", action="store_true", help="report what would be done, and write nothing")


def execute(arguments: argparse.Namespace) -> int:
    """Converts and prints the report."""
    from estimator_bridge.compat.checkpoint import ConversionRequest, convert
    from estimator_bridge.compat.checkpoint.models.keras_process import keras_model
    from estimator_bridge.compat.checkpoint.request import kind_of_name

    for like in arguments.like:
        model = keras_model(like)
        if model and model.how == "function":
            _logger.warning("calling %s for the model: this runs your code", like)
    asked = [field.name for field in dataclasses.fields(ConversionRequest) if field.name in arguments]
    options = {name: getattr(arguments, name) for name in asked}
    options["rename"] = [_pair(text) for text in [*arguments.rename, *_lines(arguments.rename_file)]]
    options["partition"] = [_partition(text) for text in arguments.partition]
    options["given"] = dict(_pair(text) for text in arguments.given)
    options["forget_bias"] = [forget_bias(text) for text in arguments.forget_bias]
    options["to"] = arguments.to or kind_of_name(arguments.target)
    report = convert(**options)
    if arguments.format == "json":
        sys.stdout.write(json.dumps(report.to_json(), indent=1) + "\n")
    else:
        from estimator_bridge.compat.checkpoint.inspection.terminal import print_report

        print_report(report, make_console(), arguments.dry_run)
    return report.exit_code


def _pair(text: str) -> tuple[str, str]:
    left, equals, right = text.rpartition("=")  # the last sign: a regular expression may contain ``(?=...)``, no name has one
    if not equals or not left:
        raise BridgeError(
            "An equals sign is missing in a value of --rename, --partition, --map or --forget-bias.",
            expected="LEFT=RIGHT, e.g. --rename OLD=NEW",
            received=text,
        )
    return left, right


def _partition(text: str) -> tuple[str, int]:
    pattern, number = _pair(text)
    if not number.isdecimal() or not int(number):
        raise BridgeError("--partition needs a number of slices.", expected="REGEX=N, N at least 1", received=text)
    return pattern, int(number)


def add_forget_bias(group: Any) -> None:
    """Adds --forget-bias."""
    words = "forget_bias of the LSTM cells whose scope matches (default: TF1's own default)"
    group.add_argument("--forget-bias", action="append", default=[], metavar="REGEX=X", help=words)


def forget_bias(text: str) -> tuple[str, float]:
    """Reads a value of --forget-bias."""
    pattern, number = _pair(text)
    try:
        return pattern, float(number)
    except ValueError:
        raise BridgeError("--forget-bias needs a number.", expected="REGEX=X, e.g. 'lstm=1.0'", received=text) from None


def _lines(path: Path | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise BridgeError(
            "The file of --rename-file cannot be read.", received=f"{path}: {error}", fix="Check the path."
        ) from None
    return [line for line in lines if line and not line.startswith("#")]
