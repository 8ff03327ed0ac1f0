"""The signatures of ``export_outputs`` that answer with the predictions."""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from estimator_bridge.compat.source.fixers.marks import UnconvertibleError
from estimator_bridge.compat.source.fixers.model.flow import Branch, assigned, assigned_value, reads_and_writes
from estimator_bridge.compat.source.fixers.script import Arguments, Script, arguments, code, nodes, simple_name


class Signatures:
    """The signatures in ``export_outputs`` of a prediction's EstimatorSpec.

    Args:
        script: Script around the model function.
        one: Branch of predictions; None without one.
        spec: Arguments of its EstimatorSpec.
    """

    def __init__(self, script: Script, one: Branch | None, spec: Arguments) -> None:
        self._script, self._one = script, one
        self._names: dict[str, str] | None = None
        self.others: list[cst.CSTNode] = []
        """Entries that answer with something else than the predictions."""
        if one is not None and spec.get("export_outputs") is not None:
            self._names = {}
            predictions = self._values(spec.get("predictions"))
            known = {code(value): "" for value in predictions}
            made, later = predictions[-1], self._written_behind(predictions[-1])
            entries = [one for one in made.elements if isinstance(one, cst.DictElement)] if isinstance(made, cst.Dict) else []
            if simple_name(predictions[0]) not in later:
                kept = [one for one in entries if isinstance(one.value, cst.Name) and one.value.value not in later]
                known |= {code(one.value): key for one in kept if (key := self._text(one.key))}
            self._read(spec["export_outputs"], known)

    def _written_behind(self, value: cst.BaseExpression) -> set[str]:
        """Returns the names that get other values, or whose objects are changed, behind the statement with an expression."""
        statements = self._one.statements if self._one else ()
        place = next((place for place, one in enumerate(statements) if assigned_value(one) is value), len(statements))
        return {name for one in statements[place + 1 :] for name in reads_and_writes(one)[1]}

    def _read(self, asked: cst.BaseExpression, known: Mapping[str, str]) -> None:
        outputs = self._values(asked)[-1]
        assert self._names is not None
        if not isinstance(outputs, cst.Dict):
            self.others.append(asked)
            return
        for entry in outputs.elements:
            key, value = (entry.key, self._values(entry.value)[-1]) if isinstance(entry, cst.DictElement) else (None, None)
            is_predict = self._script.called(value) == "tensorflow.estimator.export.PredictOutput"
            given = arguments(value, ("outputs",)) if is_predict and isinstance(value, cst.Call) else None
            name = self._text(key)
            if name and given and code(given["outputs"]) in known:
                self._names[name] = known[code(given["outputs"])]
            else:
                self.others.append(key or entry.value)

    def names(self) -> dict[str, str] | None:
        """Returns the key of the prediction with which each signature answers, empty for all; None if ``export_outputs`` says nothing.

        Raises:
            UnconvertibleError: The script exports others, too.
        """
        if self._names is None or self._one is None:
            return None
        exports = (node.attr.value for node in nodes(self._script.module, cst.Attribute) if isinstance(node, cst.Attribute))
        if self.others and any(name.startswith("export_saved") or name.endswith("Exporter") for name in exports):
            message = "only PredictOutput of the predictions is converted; write the signatures by hand"
            raise UnconvertibleError(self._one.spec, "EstimatorSpec(export_outputs=...)", message)
        if len(self._names) != 1:
            return self._names
        (key,) = self._names.values()
        return {**self._names, "serving_default": key}

    def _text(self, value: cst.BaseExpression | None) -> str:
        """Returns the text that an expression is; empty for all else."""
        statements = (*self._script.module.body, *(self._one.statements if self._one else ()))
        constants = [each for each in statements if isinstance(each, cst.SimpleStatementLine)]
        value = assigned(value.value, constants) if isinstance(value, cst.Name) else value
        if value is not None and self._script.name(value).endswith(".DEFAULT_SERVING_SIGNATURE_DEF_KEY"):
            return "serving_default"
        return str(value.evaluated_value) if isinstance(value, cst.SimpleString) else ""

    def _values(self, value: cst.BaseExpression | None) -> list[cst.BaseExpression]:
        """Returns an expression, and what it was assigned if it is a name."""
        made = assigned(value.value, self._one.statements) if isinstance(value, cst.Name) and self._one else None
        return [found for found in (value, made) if found is not None]
