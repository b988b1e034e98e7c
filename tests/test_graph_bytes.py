"""A graph as bytes and back: everything survives, and anything else is one clear error."""

import copy
import pickle
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from buropt import _core

HEADER = 24


def example(dtype="float64"):
    """A graph with every kind of node: inputs of all kinds, constants, attributes, outputs."""
    b = _core.Builder(dtype)
    x = b.input("x0['wörk'][0]", (3, 4))
    a = b.csr_input("data[0]", 12)
    y = b.input("data[1]", (), batched=True)
    weights = b.constant(np.linspace(-1, 1, 12))
    scaled = b.emit("multiply", [b.emit("reshape", [x], {"shape": [12]}), weights])
    product = b.emit("sparse_dot", [a, scaled])
    margin = b.emit("multiply", [product, y])
    part = b.emit("slice", [x], {"starts": [2, 3], "sizes": [2, 2], "steps": [-1, -2]})
    square = b.emit("integer_power", [part], {"n": -2})
    total = b.emit("sum", [square], {"axes": [0, 1], "keepdims": 0})
    both = b.emit("concatenate", [scaled, b.constant(np.zeros((0,)))], {"axis": 0})
    loss = b.emit("add", [b.emit("softplus", [margin]), total])
    (gradient,) = b.grad(total, [x])
    return b.build([loss, gradient, both, weights], ["loss", "d/d x", "both", "constant"])


def with_payload(data, payload):
    """The header of `data` with another payload, its size and checksum made to fit."""
    return data[:12] + struct.pack("<QI", len(payload), zlib.crc32(payload)) + payload


def evaluate(graph, *arrays):
    return _core.Program(graph)(*arrays)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_graph_survives(dtype):
    graph = example(dtype)
    again = _core.Graph.from_bytes(graph.to_bytes())
    assert str(again) == str(graph)
    assert again.to_bytes() == graph.to_bytes()
    assert again.input_names == ["x0['wörk'][0]", "data[0]", "data[1]"]
    assert again.output_names == graph.output_names
    assert again.dtype == dtype


def test_values_are_the_same_bits():
    b = _core.Builder("float64")
    x = b.input("x", (5,))
    special = b.constant(np.array([np.nan, -0.0, np.inf, 5e-324, 1 / 3]))
    f = b.emit("sum", [b.emit("multiply", [x, special])], {"axes": [0], "keepdims": 0})
    graph = b.build([b.emit("multiply", [x, special]), f, *b.grad(f, [x])], ["a", "f", "g"])
    x = np.random.default_rng(0).standard_normal(5)
    before, after = evaluate(graph, x), evaluate(pickle.loads(pickle.dumps(graph)), x)
    for a, c in zip(before, after, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(c).tobytes()


def test_a_graph_without_nodes_survives():
    graph = _core.Builder("float64").build([], [])
    assert _core.Graph.from_bytes(graph.to_bytes()).n_nodes == 0


def test_pickle_and_copies():
    graph = example()
    assert copy.copy(graph) is graph  # it never changes
    assert copy.deepcopy(graph) is graph
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(graph, protocol)).to_bytes() == graph.to_bytes()


def test_the_checksum_is_zlibs():
    data = example().to_bytes()
    assert struct.unpack_from("<QI", data, 12) == (
        len(data) - HEADER,
        zlib.crc32(data[HEADER:]),
    )


def test_a_long_chain_is_compact_and_quick_to_read():
    b = _core.Builder("float64")
    node = b.input("x", ())
    for k in range(100_000):
        node = b.emit("sin" if k % 2 else "exp", [node])
    data = b.build([node], ["y"]).to_bytes()
    assert len(data) < 1_200_000
    assert _core.Graph.from_bytes(data).n_nodes == 100_001


# Everything else is one error that says what is wrong with which data, and what to do.


def refused(data, *texts):
    with pytest.raises(ValueError, match=r"^model\.bo ") as caught:
        _core.Graph.from_bytes(data, "model.bo")
    assert caught.value.__cause__ is None
    message = str(caught.value)
    assert message.endswith(".")
    for text in texts:
        assert text in message


@pytest.mark.parametrize(
    "data", [b"", b"PK\x03\x04", pickle.dumps([1]), b"\x89PNG\r\n\x1a\n" + bytes(40)]
)
def test_foreign_data(data):
    refused(data, "is not a graph of buropt", "Graph.to_bytes()")


def test_a_newer_version():
    data = example().to_bytes()
    refused(data[:8] + struct.pack("<I", 2) + data[12:], "newer buropt", "Update buropt")


def test_truncated_data():
    data = example().to_bytes()
    for n in range(1, HEADER):
        refused(data[:n], "truncated", f"{n} bytes")
    for n in range(HEADER, len(data)):
        refused(data[:n], "truncated", "Copy or save it again")


def test_every_flipped_byte_is_noticed():
    data = example().to_bytes()
    for k in range(len(data)):
        flipped = bytearray(data)
        flipped[k] ^= 0xFF
        refused(bytes(flipped))
    refused(data + b"\0", "damaged")


def test_an_unknown_primitive():
    data = example().to_bytes()
    payload = data[HEADER:].replace(b"softplus", b"softplux")
    refused(with_payload(data, payload), "'softplux'", "Update buropt")


@pytest.mark.parametrize(
    ("primitive", "attributes"),
    [
        ("slice_vjp", {"starts": [4, 2], "shape": [2, 0], "steps": [1, 2]}),
        ("slice_vjp", {"starts": [0, 0], "shape": [3, 6], "steps": [1, 2**62]}),
        ("slices_vjp", {"starts": [0, 0], "shape": [4, 6], "steps": [1]}),
        ("batch_sum", {"leading": [-1]}),
        ("index_map", {"extents": [0], "strides": [2], "offset": [0]}),
        ("index_map", {"extents": [2, 2], "strides": [2], "offset": [0]}),
        ("index_in_slice", {"shape": [3], "starts": [2], "sizes_and_steps": [4]}),
        ("attention", {"n_heads": [2], "causal": []}),
        ("cumprod", {"axis": [0], "reverse": [0]}),
    ],
)
def test_attributes_that_are_of_no_array(primitive, attributes):
    """What a file brings in: a kernel would read what is not there."""
    b = _core.Builder("float64")
    with pytest.raises((ValueError, IndexError), match=f"buropt.{primitive}: "):
        b.emit(primitive, [b.input("x", (3, 6))], attributes)


def test_an_instruction_of_programs():
    b = _core.Builder("float64")
    attributes = {"transposes": [0, 0], "ending": [0, 0, 0, 0], "shape": [2, 2]}
    x = b.input("x", (2, 2))
    graph = b.build([b.emit("matmul_epilogue", [x, x], attributes)], ["y"])
    refused(graph.to_bytes(), "'matmul_epilogue' is an instruction of programs")


def test_a_node_must_have_the_type_that_its_shape_rule_gives():
    data = example().to_bytes()
    payload = data[HEADER:].replace(b"multiply", b"not_equal").replace(b"\x08not", b"\x09not")
    assert _core.Graph.from_bytes(with_payload(data, payload)).n_nodes > 0
    payload = data[HEADER:].replace(b"\x08multiply", b"\x06matmul")
    refused(with_payload(data, payload), "(matmul)")


# The checksum would hide most mistakes of the reader, so here it is made to fit.


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_changed_bytes_with_a_fitting_checksum(data):
    good = example().to_bytes()
    payload = bytearray(good[HEADER:])
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(payload) - 1))
        payload[place] = data.draw(st.integers(0, 255))
    check_reading(with_payload(good, bytes(payload)))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_cut_and_spliced_bytes_with_a_fitting_checksum(data):
    good = example().to_bytes()
    payload = good[HEADER:]
    start = data.draw(st.integers(0, len(payload)))
    stop = data.draw(st.integers(start, len(payload)))
    filling = data.draw(st.binary(max_size=24))
    check_reading(with_payload(good, payload[:start] + filling + payload[stop:]))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=80))
def test_any_payload(payload):
    check_reading(with_payload(example().to_bytes(), payload))


def check_reading(data):
    """The data are read, and are then written alike, or refused."""
    try:
        graph = _core.Graph.from_bytes(data, "model.bo")
    except ValueError:
        refused(data)
    else:
        assert _core.Graph.from_bytes(graph.to_bytes()).to_bytes() == graph.to_bytes()
        assert str(graph)


@pytest.mark.parametrize(
    "claim",
    [
        b"\x07float64\x00" + b"\xff" * 9 + b"\x01",  # inputs
        b"\x07float64\x00\x00" + b"\xff\xff\xff\xff\x0f",  # nodes
        b"\x07float64\x00\x00\x01\x01\x00\x01" + b"\x80\x80\x80\x80\x80\x80\x08",  # constant
        b"\x07float64" + b"\xff\xff\xff\xff\x7f" + b"\x03exp",  # primitives
    ],
)
def test_no_count_is_believed(claim):
    refused(with_payload(example().to_bytes(), claim + bytes(16)), "ends too early")
