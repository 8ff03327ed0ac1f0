"""Tests whose branches are equal: each function must return the same when those are left out."""

import tensorflow as tf


def for_tpu(optimizer):
    return tf.contrib.tpu.CrossShardOptimizer(optimizer)


def both_equal(first, second):
    called = []
    if first:  # kept comment
        called.append("one")
    else:
        called.append("one")
    return called


def elif_equals_its_else(first, second):
    called = []
    if first:
        called.append("one")
    elif second:
        called.append("two")
    else:
        called.append("two")
    return called


def body_equals_its_elif(first, second):
    called = []
    if first:
        if second: called.append("one")
    elif second:
        called.append("one")
    return called


def one_line_each(first, second):
    called = []
    while second:
        if first:
            break
        second = False
    if first: called.append("one")
    else: called.append("one")
    return called


def one_inside_of_another(first, second):
    called = []
    if first:
        if second:
            called.append("one")
        else:
            called.append("one")
    else:
        if second:
            called.append("one")
        else:
            called.append("one")
    return called
