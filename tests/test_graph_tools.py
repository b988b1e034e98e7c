"""Looking at graphs and oracles: nodes, DOT text, pictures, what was compiled."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import buropt as bo
from buropt import _core, drawing
from buropt.oracle.description import _bytes as description_size

MAGIC = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


def small():
    b = _core.Builder("float64")
    x = b.input("x", (2, 3))
    a = b.csr_input("a", 4)
    total = b.emit("sum", [x], {"axes": [0, 1], "keepdims": 0})
    half = b.emit("multiply", [total, b.constant(0.5)])
    product = b.emit("sparse_dot", [a, b.constant(np.arange(4.0))])
    return b.build([half, b.emit("add", [half, product])], ["half", "both"])


def mlp_oracle(n=5):
    def loss(x, a, b):
        return (x["v"] @ np.tanh(x["W"] @ a) - b) ** 2

    x0 = {"W": np.ones((4, 3)), "v": np.ones(4)}
    return bo.compile(loss, x0, data=(np.ones((n, 3)), np.ones(n)))


def mlp():
    return mlp_oracle().graph


def test_nodes():
    graph = small()
    assert len(graph.nodes) == graph.n_nodes == 8
    assert graph.nodes[2] == {
        "op": "sum",
        "name": None,
        "value": None,
        "inputs": [0],
        "attributes": {"axes": [0, 1], "keepdims": [0]},
        "shape": (),
        "batched": False,
        "sparse": False,
    }
    x, a, _, number, _, vector, product, _ = graph.nodes
    assert (x["op"], x["name"], x["shape"], x["sparse"]) == ("input", "x", (2, 3), False)
    assert (a["op"], a["name"], a["batched"], a["sparse"]) == ("input", "a", True, True)
    assert (number["op"], number["value"]) == ("constant", 0.5)
    assert (vector["op"], vector["value"], vector["shape"]) == ("constant", None, (4,))
    assert product["inputs"] == [1, 5]
    assert graph.outputs == [("half", 4), ("both", 7)]


def test_dot_text():
    text = small().to_dot()
    assert text.startswith("digraph buropt {\n")
    assert text.endswith("}\n")
    for line in (
        r'n0 [label="x\n(2, 3)", shape=oval, fillcolor="#cfe3f5"];',
        r'n1 [label="a (sparse)\nbatched (4,)", shape=oval, fillcolor="#cfe3f5"];',
        r'n2 [label="sum\naxes=(0, 1)\nkeepdims=0\n()", fillcolor="#ffffff"];',
        r'n3 [label="0.5\n()", fillcolor="#e6e6e6"];',
        r'n5 [label="constant\n(4,)", fillcolor="#e6e6e6"];',
        r'n8 [label="half", fillcolor="#fbe3c0", penwidth=2];',
        "n4 -> n8;",
        "n1 -> n6;",
    ):
        assert f"  {line}\n" in text


def test_every_node_and_every_edge_is_there():
    graph = mlp()
    text = graph.to_dot()
    nodes, outputs = graph.nodes, graph.outputs
    edges = [(source, k) for k, node in enumerate(nodes) for source in node["inputs"]]
    edges += [(node, len(nodes) + k) for k, (_, node) in enumerate(outputs)]
    drawn = re.findall(r"^  n(\d+) -> n(\d+);$", text, re.MULTILINE)
    assert sorted(edges) == sorted((int(a), int(b)) for a, b in drawn)
    assert len(re.findall(r"^  n\d+ \[label=", text, re.MULTILINE)) == len(nodes) + len(outputs)
    assert text == mlp().to_dot()


def test_labels_are_escaped():
    b = _core.Builder("float64")
    text = b.build([b.input('x0["a\\b"]\n{|}', ())], ["y"]).to_dot()
    assert r'label="x0[\"a\\b\"]\n{|}\n()"' in text


# Pictures

POSIX_SCRIPTS = pytest.mark.skipif(os.name != "posix", reason="stands in for dot by a script")


@pytest.fixture
def graphviz(tmp_path, monkeypatch):
    """Puts a stand-in for Graphviz's dot, or nothing, where it is looked for."""

    def install(script):
        folder = tmp_path / "bin"
        folder.mkdir()
        if script is not None:
            (folder / "dot").write_text(f"#!/bin/sh\n{script}\n")
            (folder / "dot").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder))

    return install


@POSIX_SCRIPTS
def test_graphviz_draws_where_it_is_installed(tmp_path, graphviz):
    graphviz('while read -r line; do [ "$line" = "}" ] && echo "drawn with $*"; done')
    mlp().draw(tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text() == "drawn with -Tsvg\n"


@pytest.mark.parametrize("suffix", drawing.FORMATS)
def test_matplotlib_draws_otherwise(tmp_path, graphviz, suffix):
    graphviz(None)
    path = tmp_path / f"graph.{suffix}"
    mlp().draw(path)
    first = path.read_bytes()
    assert first.startswith(MAGIC[suffix])
    mlp().draw(str(path))
    assert path.read_bytes() == first


@POSIX_SCRIPTS
@pytest.mark.parametrize("script", ["exit 1", "exit 0"])
def test_matplotlib_draws_if_graphviz_fails(tmp_path, graphviz, script):
    graphviz(f"read -r line; {script}")  # e.g. built without that format
    mlp().draw(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(MAGIC["png"])


@POSIX_SCRIPTS
def test_matplotlib_is_only_imported_to_draw(tmp_path, graphviz):
    graphviz("while read -r line; do :; done; echo picture")
    code = (
        "import sys; from buropt import _core; b = _core.Builder('float64');"
        "b.build([b.input('x', ())], ['y']).draw(sys.argv[1]); print('matplotlib' in sys.modules)"
    )
    command = [sys.executable, "-c", code, tmp_path / "graph.png"]
    result = subprocess.run(
        command, cwd=Path(bo.__file__).parents[1], capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_what_is_not_drawn(tmp_path):
    b = _core.Builder("float64")
    node = b.input("x", ())
    graph = b.build([node], ["y"])
    with pytest.raises(ValueError, match=r"end in \.png, \.svg or \.pdf, got 'graph\.jpeg'"):
        graph.draw("graph.jpeg")
    for k in range(drawing.LARGEST):
        node = b.emit("sin" if k % 2 else "exp", [node])
    with pytest.raises(ValueError, match=r"has 2001 nodes, and a picture shows at most 2000"):
        b.build([node], ["y"]).draw(tmp_path / "graph.png")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_graph_is_drawn(tmp_path, graphviz):
    graphviz(None)
    _core.Builder("float64").build([], []).draw(tmp_path / "graph.png")
    assert (tmp_path / "graph.png").read_bytes().startswith(MAGIC["png"])


def test_boxes_stand_below_what_they_use_and_beside_one_another():
    boxes = drawing._boxes(mlp())
    layers = drawing._layers(boxes)
    depth = {k: d for d, layer in enumerate(layers) for k in layer}
    assert sorted(depth) == list(range(len(boxes)))
    for k, box in enumerate(boxes):
        assert all(depth[source] < depth[k] for source in box.inputs)
    widths = [1.0 + k % 3 for k in range(len(boxes))]
    x = drawing._columns(boxes, layers, widths)
    for layer in layers:
        for a, b in itertools.pairwise(layer):
            assert x[b] - x[a] >= (widths[a] + widths[b]) / 2


# What was compiled


def test_a_description():
    oracle = mlp_oracle(1000)
    description = oracle.describe()
    assert description["data_bytes"] == 1000 * 4 * 8
    assert list(description["programs"]) == ["value_and_grad"]
    assert description["executor"] == "tile"
    assert description["primitives"]["tanh_vjp"] == 1
    assert "reshape" not in description["primitives"]  # another name for the same memory
    assert sum(description["stages"].values()) == description["instructions"]
    assert sum(description["primitives"].values()) == description["instructions"]
    assert description["programs"]["value_and_grad"]["nodes"] == oracle.graph.n_nodes


def test_every_program_is_described():
    oracle = mlp_oracle()
    x = oracle.x0
    oracle.value(x)
    oracle.grad(x, weights=np.ones(5))
    oracle.hvp(x, x)
    oracle.per_sample_grads(x, weights=np.ones(5))
    programs = oracle.describe()["programs"]
    assert set(programs) == {
        "value",
        "grad with weights",
        "value_and_grad",
        "hessian_products",
        "per_sample_grads with weights",
    }
    assert programs["hessian_products"]["nodes"] > programs["value_and_grad"]["nodes"]


def test_a_description_is_a_report_for_people():
    oracle = mlp_oracle(1000)
    oracle.value(oracle.x0)
    report = repr(oracle.describe())
    assert report.startswith(f"{oracle!r}\ndata: 32.0 kB\n\nvalue: ")
    assert re.search(r"\n\nvalue_and_grad: \d+ nodes, \d+ instructions\n", report)
    assert re.search(r"\n  runs in tiles of \d+ samples, in \d+ slots?; about \d+ mult", report)
    assert re.search(r"\n  memory: values .*, sums of a slot \d", report)
    assert re.search(r"\n  primitives: matmul \d, ", report)
    assert max(map(len, report.splitlines())) <= 100
    scalar = bo.compile(lambda x: x**3, 1.0).describe()
    assert re.search(r"\d instructions on single numbers\n  ", repr(scalar))
    assert scalar["stages"]["tile"] == 0


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (10**6, "1.0 MB"),
        (2_500_000_000, "2.5 GB"),
        (10**13, "10000.0 GB"),
    ],
)
def test_sizes_in_words(size, text):
    assert description_size(size) == text
