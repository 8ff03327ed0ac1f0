"""Numbers of updates and betas: from what the checkpoints tell, and never in silence from a default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimator_bridge.compat.checkpoint import convert
from estimator_bridge.compat.checkpoint.names.naming import ATTRIBUTE
from estimator_bridge.compat.checkpoint.optimizers import state
from estimator_bridge.compat.checkpoint.reading.index import read_index
from estimator_bridge.compat.checkpoint.slots import ITERATIONS, TABLES
from estimator_bridge.compat.checkpoint.writing.draft import Draft
from estimator_bridge.compat.checkpoint.writing.publish import publish, write_tensors
from tests.cli.convert.test_checkpoint import OLD, write_keras_side


def saved(folder: Path, **kept: Any) -> Draft:
    return Draft(read_index(write_tensors(folder / "m", kept)))


def powers(updates: int, beta_1: float = 0.9, beta_2: float = 0.999) -> dict[str, float]:
    """Makes beta powers as TF1 does: float32 products."""
    made = [np.float32(beta_1), np.float32(beta_2)]
    for _ in range(updates):
        made = [made[0] * np.float32(beta_1), made[1] * np.float32(beta_2)]
    return {"beta1_power": float(made[0]), "beta2_power": float(made[1])}


@pytest.mark.parametrize("updates", [0, 1, 20, 200])
@pytest.mark.parametrize(("beta_1", "beta_2"), [(0.9, 0.999), (0.8, 0.95), (0.95, 0.9999)])
def test_betas_from_powers(tmp_path: Path, updates: int, beta_1: float, beta_2: float) -> None:
    found = state.known_betas(saved(tmp_path, global_step=updates, **powers(updates, beta_1, beta_2)))
    assert found == pytest.approx({"beta_1": beta_1, "beta_2": beta_2}, abs=1e-6)


def test_powers_that_are_0_have_no_betas(tmp_path: Path) -> None:
    kept = saved(tmp_path, global_step=200_000, beta1_power=0.0, beta2_power=0.0)
    assert state.known_betas(kept) == {}
    assert list(state.differing_betas(kept, {"beta_1": 0.5})) == []


def test_two_optimizers_with_different_betas(tmp_path: Path) -> None:
    kept = saved(tmp_path, global_step=0, beta1_power=0.9, beta1_power_1=0.5)
    assert state.known_betas(kept) == {}


@pytest.mark.parametrize(
    ("model", "said"), [({}, ["has by default 0.9"]), ({"beta_1": 0.7}, ["has 0.7"]), ({"beta_1": 0.8}, [])]
)
def test_betas_that_are_not_the_models(tmp_path: Path, model: dict[str, float], said: list[str]) -> None:
    warnings = list(state.differing_betas(saved(tmp_path, global_step=20, **powers(20, beta_1=0.8)), model))
    assert len(warnings) == len(said)
    assert all(
        "beta_1 = 0.8 after 20 updates" in warning and text in warning for warning, text in zip(warnings, said, strict=True)
    )


@pytest.mark.parametrize("updates", [0, 1, 19, 500])
def test_a_step_from_powers_alone(tmp_path: Path, updates: int) -> None:
    assert state.step_of_powers(saved(tmp_path, **powers(updates))) == updates


def test_powers_that_disagree_are_no_step(tmp_path: Path) -> None:
    assert state.step_of_powers(saved(tmp_path / "0", **powers(20, beta_1=0.8))) is None
    assert state.step_of_powers(saved(tmp_path / "1", beta1_power=0.0, beta2_power=0.5)) is None


def iterations(folder: Path, table: str, **kept: Any) -> tuple[int | None, list[str]]:
    draft = saved(folder, **kept)
    warnings = state.add_iterations(draft, "iterations", [TABLES[table]])
    if warnings is None:
        return None, []
    publish(draft, folder / "new")
    return Draft(read_index(folder / "new")).number("iterations", *state.INTEGERS), warnings


def test_iterations(tmp_path: Path) -> None:
    assert iterations(tmp_path / "0", "Adam", global_step=7) == (7, [])
    assert iterations(tmp_path / "1", "LAMB", global_step=7, beta1_power=0.9**8) == (7, [])  # it corrects the bias
    number, (warning,) = iterations(tmp_path / "2", "BERT's Adam", global_step=7)
    assert (number, "BERT's Adam is assumed not to correct" in warning) == (ITERATIONS + 7, True)
    number, (warning,) = iterations(tmp_path / "3", "Adam", **powers(30))
    assert (number, "computed from the beta powers" in warning) == (30, True)
    assert iterations(tmp_path / "4", "Momentum", w=[1.0]) == (None, [])


def test_updates_back() -> None:
    assert state.updates(ITERATIONS + 7, [TABLES["BERT's Adam"]], ()) == (7, [])
    assert state.updates(9, [TABLES["Adam"]], ("beta1_power",)) == (9, [])
    step, (warning,) = state.updates(9, [TABLES["BERT's Adam"]], ())
    assert (step, "after 9 updates its steps differ" in warning) == (9, True)


# Around ITERATIONS; numbers that float32, int32 and float64 cannot hold.
LARGE = [ITERATIONS - 1, ITERATIONS, ITERATIONS + 1, 2**24 + 1, 2**31 - 1, 2**31 + 1, 2**53 + 1]


@pytest.mark.parametrize(
    ("count", "dtype"), [*((count, np.int64) for count in LARGE), *((count, np.int32) for count in LARGE if count < 2**31)]
)
def test_large_counts_are_exact_in_both_directions(count: int, dtype: type[np.integer[Any]], tmp_path: Path) -> None:
    old = write_tensors(tmp_path / "old" / "m", {**OLD, "global_step": dtype(count)})
    like = write_keras_side(tmp_path / "like" / "m")
    assert convert(old, tmp_path / "keras" / "m", to="object-based", like=like).written
    saved = read_index(tmp_path / "keras" / "m")
    assert Draft(saved).number(f"optimizer/iter{ATTRIBUTE}", *state.INTEGERS) == count
    assert convert(saved.prefix, tmp_path / "back" / "m", to="name-based", allow_unmatched=True).written
    assert Draft(read_index(tmp_path / "back" / "m")).number("global_step", *state.INTEGERS) == count


@pytest.mark.parametrize("count", LARGE)
def test_large_counts_without_bias_correction(count: int, tmp_path: Path) -> None:
    number, _ = iterations(tmp_path, "BERT's Adam", global_step=count)
    assert number == ITERATIONS + count
    assert state.updates(ITERATIONS + count, [TABLES["BERT's Adam"]], ()) == (count, [])
    assert state.updates(count, [TABLES["Adam"]], ("beta1_power",)) == (count, [])
