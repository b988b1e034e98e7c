"""What an import of buropt costs: nothing is loaded that only some programs need."""

import subprocess
import sys

import pytest

# The scripts of users' first minutes, none of which needs more than NumPy.
TRAINING = """
import numpy as np
import buropt as bo
from buropt.nn import models

params = models.mlp_init(0, context=3, width=2, hidden=4)
tokens = np.arange(32).reshape(8, 4) % 27
oracle = bo.compile(models.mlp_loss, params, data=(tokens[:, :3], tokens[:, 3]))
oracle.grad(oracle.x0)
bo.hvp(lambda x: np.sum(x**3))(np.ones(3), np.ones(3))
"""
HEAVY = [
    *("scipy", "sklearn", "matplotlib", "pandas", "hydra", "rich"),
    *("importlib.metadata", "json", "zipfile", "numpy.ma"),
]


@pytest.mark.parametrize("script", ["import buropt", TRAINING], ids=["import", "training"])
def test_only_numpy_is_imported(script):
    code = f"""
import sys
import numpy
before = set(sys.modules)
{script}
print([name for name in {HEAVY} if name in sys.modules and name not in before])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "[]"


def test_help_and_completion_are_quick():
    code = """
import sys
import buropt.run
heavy = ("scipy", "sklearn", "matplotlib", "pandas", "joblib")
print([name for name in heavy if name in sys.modules])
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert run.stdout.strip() == "[]"


def test_names_that_are_looked_up_late():
    import buropt as bo

    assert {"load", "save_arrays", "load_arrays", "load_results", "__version__"} <= set(dir(bo))
    assert bo.__version__.count(".") >= 1
    assert bo.load.__module__ == "buropt.oracle.loading"
    with pytest.raises(AttributeError, match="'buropt' has no attribute 'lod'"):
        _ = bo.lod
