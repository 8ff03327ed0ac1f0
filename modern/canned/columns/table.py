"""Which column is built how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from estimator_bridge.errors import NotSupportedError
from estimator_bridge.modern.canned.columns import categorical, crosses, embedding, indicator, numeric, sequences, vocabulary
from estimator_bridge.modern.canned.columns.categorical import Ids
from estimator_bridge.modern.canned.columns.inputs import Column, Inputs
from estimator_bridge.modern.canned.columns.representation import Representation

Builder = TypeVar("Builder")

# By class name: the first generation's are the same with a leading underscore, but for its shared embeddings.
CATEGORICAL: Mapping[str, Callable[[Column, Inputs], Ids]] = {
    "BucketizedColumn": numeric.bucket_ids,
    "CrossedColumn": crosses.crossed,
    "HashedCategoricalColumn": categorical.hashed,
    "IdentityCategoricalColumn": categorical.identity,
    "SequenceCategoricalColumn": sequences.ids,
    "VocabularyFileCategoricalColumn": vocabulary.from_file,
    "VocabularyListCategoricalColumn": vocabulary.from_list,
    "WeightedCategoricalColumn": categorical.weighted,
}
DENSE: Mapping[str, Callable[[Column, Inputs, str], Representation]] = {
    "BucketizedColumn": numeric.bucket_indicator,
    "EmbeddingColumn": embedding.embedding,
    "IndicatorColumn": indicator.indicator,
    "NumericColumn": numeric.numeric,
    "SequenceNumericColumn": sequences.numbers,
    "SharedEmbeddingColumn": embedding.shared_v2,
    "_SharedEmbeddingColumn": embedding.shared,
}


def builder(table: Mapping[str, Builder], column: Any) -> Builder:
    """The row of a column's class.

    Raises:
        NotSupportedError: a class that is not in the table.
    """
    name = type(column).__name__
    for known in (name, name.removeprefix("_")):
        if known in table:
            return table[known]
    raise NotSupportedError(
        f"A column of the class {name} cannot stand here.",
        expected=f"one of {', '.join(table)}",
        received=repr(column),
        fix="Wrap a categorical column in an indicator or embedding column; run columns of your own with --path modern.",
    )
