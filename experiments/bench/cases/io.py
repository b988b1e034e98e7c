"""Saving and loading: activations that are computed for it, and a compiled gradient function.

Activations are the hidden layer of the MLP, (64, 1024) float32. A gradient function is that of the
tiny graph or of the GPT, written to one file and read back by a process that has not its source;
loading ends with the first gradient. Only peers that have such a file take part.
"""

from __future__ import annotations

import atexit
import pickle
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.bench import networks, peers
from experiments.bench.cases import tiny
from experiments.bench.contest import Case, Contestant

HIDDEN, BATCH = 1024, 64
SAFE = "only buropt waits until the file is on the disk"


@cache
def folder() -> Path:
    """A temporary folder, deleted when the process ends."""
    path = Path(tempfile.mkdtemp(prefix="bench-io-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def cases(quick: bool) -> Iterator[Case]:
    """Activations: compute and save, load. Gradient functions: save, load and call."""
    arrays = {
        "buropt": buropt_arrays,
        "numpy": numpy_arrays,
        "torch": torch_arrays,
        "jax": jax_arrays,
    }
    for name in ("compute and save", "load"):
        builds = {peer: partial(_pick, build, name == "load") for peer, build in arrays.items()}
        yield Case(
            *("io", "activations", name),
            builds,
            tolerance=1e-4,
            note="numpy, jax: forward pass, then numpy.save; torch: then torch.save; " + SAFE,
        )
    functions: dict[str, dict[str, Callable[[], Pair]]] = {
        "tiny": {
            "buropt": buropt_tiny,
            "casadi": casadi_tiny,
            "heyoka": heyoka_tiny,
            "jax": jax_tiny,
        },
        "GPT": {"buropt": buropt_gpt, "jax": jax_gpt},
    }
    for model, of_model in functions.items():
        for name in ("save", "load and call"):
            builds = {
                peer: partial(_pick, build, name != "save") for peer, build in of_model.items()
            }
            yield Case(
                *("io", "gradient function", f"{model}: {name}"),
                builds,
                reference="buropt",
                tolerance=1e-12 if model == "tiny" else 2e-4,
                turns=5,
                note="casadi: Function.save; heyoka: pickle; jax: jax.export; " + SAFE,
            )


# What can be saved and read back: `save()`, and `load()`, which gives the numbers.
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def _pick(build: Callable[[], Pair], loads: bool) -> Contestant:
    save, load = build()
    save()

    def answer() -> Any:
        save()
        return peers.flat(load())

    return Contestant(load if loads else save, answer)


# Activations


def _mlp() -> tuple[Any, Any, Any]:
    params = networks.mlp_parameters(HIDDEN)
    return params, *networks.mlp_samples(BATCH)


def buropt_arrays() -> Pair:
    import buropt as bo
    from buropt import nn

    params, tokens, targets = _mlp()
    path = folder() / "activations.buropt"

    def loss(params: Any, tokens: Any, target: Any) -> Any:
        x = nn.embedding(tokens, params["embedding"]).reshape(-1)
        h = bo.tag(np.tanh(nn.linear(x, **params["hidden"])), "hidden")
        return nn.cross_entropy(nn.linear(h, **params["out"]), target)

    oracle = bo.compile(loss, params, data=(tokens, targets))
    return (
        lambda: oracle.save_intermediates(path, oracle.x0, names=["hidden"]),
        lambda: bo.load_arrays(path)["hidden"],
    )


def _hidden(np: Any, params: Any, tokens: Any) -> Any:
    x = params["embedding"][tokens].reshape(BATCH, -1)
    return np.tanh(x @ params["hidden"]["weight"].T + params["hidden"]["bias"])


def numpy_arrays() -> Pair:
    params, tokens, _ = _mlp()
    path = folder() / "numpy.npy"
    return lambda: np.save(path, _hidden(np, params, tokens)), lambda: np.load(path)


def jax_arrays() -> Pair:
    jax, jnp = peers.need("jax"), peers.need("jax.numpy")
    params, tokens, _ = _mlp()
    params = jax.tree.map(jnp.asarray, params)
    path = folder() / "jax.npy"
    hidden = jax.jit(partial(_hidden, jnp))
    return lambda: np.save(path, hidden(params, tokens)), lambda: np.load(path)


def torch_arrays() -> Pair:
    torch = peers.need("torch")
    params, tokens, _ = _mlp()
    table, weight, bias = (
        torch.as_tensor(p)
        for p in (params["embedding"], params["hidden"]["weight"], params["hidden"]["bias"])
    )
    tokens = torch.as_tensor(tokens)
    path = folder() / "activations.pt"

    def save() -> None:
        with torch.inference_mode():
            x = torch.nn.functional.embedding(tokens, table).flatten(1)
            torch.save(torch.tanh(torch.nn.functional.linear(x, weight, bias)), path)

    return save, lambda: torch.load(path)


# Gradient functions


def _buropt(oracle: Any, name: str) -> Pair:
    import buropt as bo

    path = folder() / name

    def load() -> Any:
        again = bo.load(path)
        return again.grad(again.x0)

    return lambda: oracle.save(path), load


def buropt_tiny() -> Pair:
    import buropt as bo

    return _buropt(bo.compile(partial(tiny.of_vector, None), tiny.POINT), "tiny.buropt")


def buropt_gpt() -> Pair:
    import buropt as bo
    from buropt.nn import models

    loss = partial(models.gpt_loss, n_heads=networks.GPT_HEADS)
    oracle = bo.compile(loss, networks.gpt_parameters(), data=networks.gpt_samples(BATCH))
    return _buropt(oracle, "gpt.buropt")


def casadi_tiny() -> Pair:
    casadi = peers.need("casadi")
    x = casadi.SX.sym("x", 2)
    gradient = casadi.gradient(tiny.of_vector(None, x), x)
    function = casadi.Function("gradient", [x], [gradient])
    path = str(folder() / "tiny.casadi")
    return lambda: function.save(path), lambda: casadi.Function.load(path)(tiny.POINT)


def heyoka_tiny() -> Pair:
    heyoka = peers.need("heyoka")
    a, b = heyoka.make_vars("a", "b")
    value = tiny.graph(a, b)
    function = heyoka.cfunc([heyoka.diff(value, a), heyoka.diff(value, b)], vars=[a, b])
    path = folder() / "tiny.heyoka"
    return (
        lambda: path.write_bytes(pickle.dumps(function)),
        lambda: pickle.loads(path.read_bytes())(tiny.POINT),
    )


def _jax(function: Any, arguments: tuple[Any, ...], name: str) -> Pair:
    export = peers.need("jax.export")
    jax = peers.need("jax")
    path = folder() / name
    exported = export.export(jax.jit(function))(*arguments)

    def load() -> Any:
        again = export.deserialize(bytearray(path.read_bytes()))
        # Under a new jit, as in a new process: what has been compiled before is not used.
        return peers.flat(*jax.tree.leaves(jax.jit(again.call)(*arguments)))

    return lambda: path.write_bytes(exported.serialize()), load


def jax_tiny() -> Pair:
    peers.need("jax").config.update("jax_enable_x64", True)
    gradient = peers.need("jax").grad(partial(tiny.of_vector, None))
    return _jax(gradient, (tiny.POINT,), "tiny.jax")


def jax_gpt() -> Pair:
    from experiments.bench import frameworks

    peer = frameworks.get("jax")
    params = networks.gpt_parameters()
    gradient = peers.need("jax").grad(partial(networks.gpt_loss, peer))

    def in_order(tree: Any, tokens: Any, targets: Any) -> Any:
        return peers.leaves(gradient(tree, tokens, targets), params)  # JAX sorts the keys of dicts

    data = [peer.array(part) for part in networks.gpt_samples(BATCH)]
    return _jax(in_order, (params, *data), "gpt.jax")
