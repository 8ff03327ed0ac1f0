"""20 steps on one side, convert, 100 steps on the other, for every optimizer and family; docs/explanation/checkpoint-training.md has the figures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.slots import TABLES
from tests.compat.checkpoint.conversion.training_proof import (
    CASES,
    COLUMNS,
    FAMILIES,
    INITIAL,
    PAGE,
    Family,
    New,
    Proof,
    families,
    page,
    rows,
)

EVERY = [(name, family) for name in CASES for family in families(name)]
WITHOUT = [(name, family) for name in CASES for family in FAMILIES if family not in families(name)]


@pytest.fixture(scope="module")
def proof(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proof]:
    made = Proof(tmp_path_factory.mktemp("proof"))
    yield made
    made.close()


@pytest.mark.parametrize(("name", "family"), EVERY)
def test_training_goes_on(proof: Proof, name: str, family: Family) -> None:
    measured = proof.measure(name, family)
    assert measured.forward.complete
    assert measured.backward.complete
    assert measured.restored == 0.0  # by a v1 Saver, from the same files
    assert measured.close("dense"), measured.differences
    epsilon = CASES[name].given.get("epsilon")
    said = [f"epsilon={epsilon:g}, TF1's default" in warning for warning in measured.forward.warnings] if epsilon else []
    assert sum(said) == (epsilon is not None)
    for report in (measured.forward, measured.backward):  # nothing differs in silence, and no false alarm is given
        warned = [warning for warning in report.warnings if "sparse gradients" in warning]
        assert len(warned) == (not measured.close("sparse")), (measured.differences, warned)
        assert all(warning.startswith("sparse_embeddings has sparse gradients (model.ckpt-20.meta)") for warning in warned)


@pytest.mark.parametrize(("name", "family"), WITHOUT)
def test_a_family_without_the_class_is_reported_by_variable(proof: Proof, name: str, family: Family, tmp_path: Path) -> None:
    like = New("Adam", {}, family).checkpoint.write(str(tmp_path / "like"))
    _, saved, _ = proof.trained(name)
    report = convert(saved, tmp_path / "model.ckpt-20", like=like)
    said = [warning for warning in report.warnings if TABLES[name].absent[family] in warning]
    assert len(said) == 1
    assert all(variable in said[0] for variable in INITIAL)


def test_other_betas_are_reported(proof: Proof) -> None:
    """The newer families do not keep theirs, the legacy one does, and its are right."""
    name = "Adam with other betas"
    first, second = (warning for warning in proof.measure(name, "tf_keras").forward.warnings if "_power is that of" in warning)
    assert ("beta_1 = 0.8" in first, "beta_2 = 0.95" in second) == (True, True)
    for family in families(name):
        assert "beta" not in "".join(proof.measure(name, family).backward.warnings)  # the old graph's powers tell them
    assert "_power" not in "".join(proof.measure(name, "legacy").forward.warnings)


def test_the_page_is_in_step(proof: Proof) -> None:
    """Rounding may come out otherwise; what is close and what is not must not, nor how far apart that is."""
    recorded, now = rows(PAGE.read_text(encoding="utf-8")), rows(page(proof))
    assert recorded.keys() == now.keys()
    for name, (keras_class, *cells) in now.items():
        assert recorded[name][0] == keras_class
        for (kind, family), old, new in zip(COLUMNS, recorded[name][1:], cells, strict=True):
            if family not in FAMILIES:
                continue
            assert (bool(old), old.startswith("**")) == (bool(new), new.startswith("**")), (name, family, old, new)
            if new.startswith("**"):
                assert 0.5 < float(old.strip("*")) / float(new.strip("*")) < 2, (name, family, old, new)
            elif new:
                assert float(old) <= 1.05 * proof.measure(name, family).limits[kind], (
                    name,
                    family,
                    old,
                )  # its second digit is rounded
