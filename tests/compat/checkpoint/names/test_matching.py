"""Variables are paired by name, shape and order, and never guessed."""

from __future__ import annotations

import pytest

from estimator_bridge.compat.checkpoint.errors import NamingError
from estimator_bridge.compat.checkpoint.format.bundle import Entry
from estimator_bridge.compat.checkpoint.names.matching import Matching, Named, match


def named(**shapes: tuple[int, ...]) -> list[Named]:
    return [Named(name.replace("__", "/"), name.replace("__", "/"), Entry(1, shape)) for name, shape in shapes.items()]


def pairs(result: Matching) -> dict[str, tuple[str, str]]:
    return {pair.source: (pair.target, pair.how) for pair in result.matches}


def test_equal_names_first() -> None:
    result = match(named(dense__kernel=(4, 4), dense_1__kernel=(4, 4)), named(dense_1__kernel=(4, 4), dense__kernel=(4, 4)))
    assert pairs(result) == {"dense/kernel": ("dense/kernel", "name"), "dense_1/kernel": ("dense_1/kernel", "name")}


def test_endings_of_names_across_scopes() -> None:
    result = match(
        named(m__h__kernel=(4, 4), m__o__kernel=(4, 4)), named(sequential__o__kernel=(4, 4), sequential__h__kernel=(4, 4))
    )
    assert pairs(result) == {
        "m/h/kernel": ("sequential/h/kernel", "end of name"),
        "m/o/kernel": ("sequential/o/kernel", "end of name"),
    }


def test_a_shape_that_occurs_once() -> None:
    result = match(named(w=(3, 5), b=(5,)), named(layer__kernel=(3, 5), layer__bias=(5,)))
    assert {how for _, how in pairs(result).values()} == {"shape"}


def test_equal_shapes_without_a_name_are_refused() -> None:
    result = match(named(a=(4, 4), b=(4, 4)), named(x=(4, 4), y=(4, 4)))
    assert result.matches == ()
    assert result.ambiguous == {"x": ("a", "b"), "y": ("a", "b")}


def test_variables_of_other_kinds_do_not_fit_each_other() -> None:
    """Two towers, whose biases and offsets have one shape."""
    old = named(a__biases=(4,), a__gamma=(4,), b__biases=(4,), b__gamma=(4,))
    new = named(x__bias=(4,), x__gamma=(4,), y__bias=(4,), y__gamma=(4,))
    biases, offsets = ("a/biases", "b/biases"), ("a/gamma", "b/gamma")
    assert match(old, new).ambiguous == {"x/bias": biases, "y/bias": biases, "x/gamma": offsets, "y/gamma": offsets}


def test_order_of_creation_only_when_accepted() -> None:
    sources = named(fc_10__w=(4, 4), fc__w=(4, 4), fc_2__w=(4, 4))
    targets = named(first=(4, 4), second=(4, 4), third=(4, 4))
    assert pairs(match(sources, targets, accept_order=True)) == {
        "fc/w": ("first", "order"),
        "fc_2/w": ("second", "order"),
        "fc_10/w": ("third", "order"),
    }


def test_unmatched_variables_are_listed() -> None:
    result = match(named(a=(1,), b=(2,)), named(c=(2,), d=(3,)))
    assert (result.unmatched_sources, result.unmatched_targets) == (("a",), ("d",))


def test_pairs_by_hand() -> None:
    result = match(named(a=(4, 4), b=(4, 4)), named(x=(4, 4), y=(4, 4)), {"a": "y"})
    assert pairs(result) == {"a": ("y", "map"), "b": ("x", "shape")}
    with pytest.raises(NamingError, match="no variable has this name"):
        match(named(a=(1,)), named(x=(1,)), {"z": "x"})
    with pytest.raises(NamingError, match="different shapes"):
        match(named(a=(1,)), named(x=(2,)), {"a": "x"})


def test_numbers_that_start_elsewhere_are_no_names() -> None:
    """Another model was built before this one in the Keras process: its dense_1 is the old graph's dense."""
    old = named(m__dense__kernel=(4, 4), m__dense_1__kernel=(4, 4))
    new = named(dense_1__kernel=(4, 4), dense_2__kernel=(4, 4))
    result = match(old, new)
    assert result.matches == ()
    assert result.ambiguous == dict.fromkeys(["dense_1/kernel", "dense_2/kernel"], ("m/dense/kernel", "m/dense_1/kernel"))
    assert pairs(match(old, new, accept_order=True)) == {
        "m/dense/kernel": ("dense_1/kernel", "order"),
        "m/dense_1/kernel": ("dense_2/kernel", "order"),
    }


def test_equal_numbers_are_names() -> None:
    result = match(
        named(m__dense__kernel=(4, 4), m__dense_1__kernel=(4, 4)), named(dense_1__kernel=(4, 4), dense__kernel=(4, 4))
    )
    assert pairs(result)["m/dense_1/kernel"] == ("dense_1/kernel", "end of name")


def test_a_pair_by_hand_is_never_given_back() -> None:
    old = named(m__dense__kernel=(4, 4), m__dense_1__kernel=(4, 4))
    new = named(dense_1__kernel=(4, 4), dense_2__kernel=(4, 4))
    result = match(old, new, {"m/dense_1/kernel": "dense_1/kernel"})
    assert pairs(result) == {"m/dense_1/kernel": ("dense_1/kernel", "map"), "m/dense/kernel": ("dense_2/kernel", "scope")}


def test_a_bias_follows_its_kernel() -> None:
    """Kernels are told apart by their shapes, biases of one shape by the kernels beside them."""
    old = named(a__kernel=(3, 4), a__bias=(4,), b__kernel=(5, 4), b__bias=(4,), c__kernel=(4, 4), c__bias=(4,))
    new = named(x__kernel=(4, 4), x__bias=(4,), y__kernel=(3, 4), y__bias=(4,), z__kernel=(5, 4), z__bias=(4,))
    assert pairs(match(old, new)) == {
        "a/kernel": ("y/kernel", "shape"),
        "b/kernel": ("z/kernel", "shape"),
        "c/kernel": ("x/kernel", "shape"),
        "a/bias": ("y/bias", "scope"),
        "b/bias": ("z/bias", "scope"),
        "c/bias": ("x/bias", "scope"),
    }


def test_batch_normalization_follows_the_convolution_of_its_block() -> None:
    parts = ("gamma", "beta", "moving_mean", "moving_variance")
    old = named(one__conv__w=(3, 7), two__conv__w=(5, 7), **{f"{b}__bn__{p}": (7,) for b in ("one", "two") for p in parts})
    new = named(y__conv2d__w=(5, 7), x__conv2d__w=(3, 7), **{f"{b}__norm__{p}": (7,) for b in ("y", "x") for p in parts})
    found = pairs(match(old, new))
    assert {found[f"one/bn/{part}"] for part in parts} == {(f"x/norm/{part}", "scope") for part in parts}
    assert {found[f"two/bn/{part}"] for part in parts} == {(f"y/norm/{part}", "scope") for part in parts}


def test_contradicting_scopes_pair_nothing() -> None:
    old = named(a__kernel=(3, 4), a__table=(9, 9), a__bias=(4,), b__bias=(4,))
    new = named(x__kernel=(3, 4), y__table=(9, 9), x__bias=(4,), y__bias=(4,))
    assert set(match(old, new).ambiguous) == {"x/bias", "y/bias"}


def test_contrib_and_canned_names_that_differ_from_keras() -> None:
    table = "dnn/input_from_feature_columns/input_layer"
    old = named(fc1__weights=(4, 4), fc2__weights=(4, 4), fc1__biases=(4,), fc2__biases=(4,))
    old += [
        Named(name, name, Entry(1, (9, 2))) for name in (f"{table}/{c}_embedding/embedding_weights" for c in ("age", "job"))
    ]
    old += named(linear__linear_model__bias_weights=(1,))
    new = named(net__fc2__kernel=(4, 4), net__fc1__kernel=(4, 4), net__fc2__bias=(4,), net__fc1__bias=(4,))
    new += named(job_embedding__embeddings=(9, 2), age_embedding__embeddings=(9, 2), linear_model__bias=(1,))
    found = pairs(match(old, new))
    assert found.pop(f"{table}/age_embedding/embedding_weights") == ("age_embedding/embeddings", "end of name")
    assert found.pop(f"{table}/job_embedding/embedding_weights") == ("job_embedding/embeddings", "end of name")
    assert found.pop("linear/linear_model/bias_weights") == ("linear_model/bias", "end of name")
    assert {source.replace("weights", "kernel").replace("biases", "bias"): target for source, (target, _) in found.items()} == {
        f"{layer}/{part}": f"net/{layer}/{part}" for layer in ("fc1", "fc2") for part in ("kernel", "bias")
    }


def test_order_is_never_accepted_of_names_that_do_not_count() -> None:
    result = match(named(encoder__w=(4, 4), decoder__w=(4, 4)), named(x=(4, 4), y=(4, 4)), accept_order=True)
    assert set(result.ambiguous) == {"x", "y"}


def test_a_known_order_of_creation_is_that_of_names_that_do_not_count() -> None:
    old, new = named(encoder__w=(4, 4), decoder__w=(4, 4), block__w=(4, 4)), named(x=(4, 4), y=(4, 4), z=(4, 4))
    created = ["encoder/w", "decoder/w", "block/w"]
    found = pairs(match(old[::-1], new, accept_order=True, created=created))
    assert found == {"encoder/w": ("x", "order"), "decoder/w": ("y", "order"), "block/w": ("z", "order")}
    assert match(old, new, created=created).ambiguous["x"] == tuple(created), "the order in which pairs are offered"
    assert match(old, new, accept_order=True, created=created[1:]).ambiguous.keys() == {"x", "y", "z"}


def test_a_variable_that_fits_two_is_refused_on_either_side() -> None:
    assert match(named(a=(4, 4)), named(x=(4, 4), y=(4, 4))).ambiguous == {"x": ("a",), "y": ("a",)}
    assert match(named(a=(4, 4), b=(4, 4)), named(x=(4, 4))).ambiguous == {"x": ("a", "b")}


def test_equal_names_of_other_shapes_or_types_are_no_pair() -> None:
    result = match(
        [Named("w", "w", Entry(1, (4, 6)))], [Named("k1", "w", Entry(1, (6, 4))), Named("k2", "w", Entry(2, (4, 6)))]
    )
    assert (result.matches, result.unmatched_sources, result.unmatched_targets) == ((), ("w",), ("k1", "k2"))


def test_many_variables_of_one_shape() -> None:
    names = [f"block_{block}/dense_{layer}/kernel" for block in range(200) for layer in range(100)]
    # A product of both sides would not end before the deadline of every test.
    result = match(
        [Named(f"net/{n}", f"net/{n}", Entry(1, (4, 4))) for n in names], [Named(n, f"m/{n}", Entry(1, (4, 4))) for n in names]
    )
    assert len(result.matches) == len(names)
    assert all(pair.source == f"net/{pair.target}" for pair in result.matches)


def test_names_that_only_differ_in_case_are_pairs_where_they_are_unique() -> None:
    old, new = (
        named(net__CONV1__kernel=(3, 3), net__CONV2__kernel=(3, 3)),
        named(m__conv2__kernel=(3, 3), m__conv1__kernel=(3, 3)),
    )
    assert pairs(match(old, new)) == {
        "net/CONV1/kernel": ("m/conv1/kernel", "end of name"),
        "net/CONV2/kernel": ("m/conv2/kernel", "end of name"),
    }
    assert not match(old, named(m__conv1__kernel=(3, 3), n__Conv1__kernel=(3, 3))).matches
