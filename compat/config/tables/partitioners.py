"""Partitioners, which split a large variable over parameter servers."""

from collections.abc import Mapping
from typing import Any

from estimator_bridge.compat.config.tables.build import manual, mapped
from estimator_bridge.compat.rules import Conversion, ConversionRule, Fidelity, RuleTable
from estimator_bridge.errors import BridgeError

_MODULE = "tf.distribute.experimental.partitioners"
_SETTING = "strategy.partitioner"


def _row(
    name: str, kind: str, names: Mapping[str, str], fidelity: Fidelity, *examples: Mapping[str, Any], note: str = ""
) -> ConversionRule:
    def convert(arguments: Mapping[str, Any]) -> Conversion:
        unknown = sorted(set(arguments) - {*names, "axis"})
        if unknown:
            raise BridgeError(
                f"{name} has no argument {unknown[0]}.", expected=", ".join([*names, "axis"]), received=unknown[0]
            )
        kept = {names[key]: value for key, value in arguments.items() if key in names and value is not None}
        settings = {_SETTING: {"kind": kind} | kept}
        if arguments.get("axis", 0) != 0:
            return Conversion(settings, Fidelity.APPROXIMATE, "variables are split along axis 0 instead of the given axis")
        return Conversion(settings)

    def invert(settings: Mapping[str, Any]) -> Any:
        part = settings.get(_SETTING, {})
        return {key: part[to] for key, to in names.items() if to in part} if part.get("kind") == kind else None

    return mapped(name, f"{_MODULE}.{kind}", fidelity, convert, invert, *examples, note=note)


PARTITIONERS = RuleTable(
    "partitioners",
    "Partitioners",
    (
        _row("fixed_size_partitioner", "FixedShardsPartitioner", {"num_shards": "num_shards"}, Fidelity.EXACT, {"num_shards": 2}),
        _row("min_max_variable_partitioner", "MinSizePartitioner",
             {"max_partitions": "max_shards", "min_slice_size": "min_shard_bytes", "bytes_per_string_element": "bytes_per_string"},
             Fidelity.EXACT, {"max_partitions": 4, "min_slice_size": 1024}),
        _row("variable_axis_size_partitioner", "MaxSizePartitioner",
             {"max_shard_bytes": "max_shard_bytes", "max_shards": "max_shards", "bytes_per_string_element": "bytes_per_string"},
             Fidelity.EXACT, {"max_shard_bytes": 1024}, {"max_shard_bytes": 1024, "max_shards": 3}),
        manual("create_partitioned_variables", "tf.Variable", "It made the slices itself: make one variable under the strategy's scope."),
    ),
    about="ParameterServerStrategy(variable_partitioner=...) takes them; other strategies do not split variables. A value is the "
    "partitioner's arguments by name.",
)  # fmt: skip
