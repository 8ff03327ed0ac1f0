"""Request to a session: fetches of one ``Session.run``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorflow.python.client.session import _FetchHandler

from estimator_bridge.modern.graph.fragments import Operation, Tensor


class Request:
    """Structure of fetches as ``Session.run`` takes it: tensors, operations, variables, names.

    Attributes:
        tensors: Tensors to evaluate, each once.
        operations: Operations to run.
    """

    def __init__(self, graph: Any, fetches: Any) -> None:
        self._handler = _FetchHandler(graph, fetches, {})
        self.tensors: list[Tensor] = self._handler.fetches()
        self.operations: list[Operation] = self._handler.targets()

    @property
    def elements(self) -> list[Any]:
        """Tensors and operations."""
        return [*self.tensors, *self.operations]

    def results(self, values: Mapping[str, Any]) -> Any:
        """Returns the structure with the values of the tensors, given by name; None for an operation."""
        return self._handler.build_results(None, [values[tensor.name] for tensor in self.tensors])
