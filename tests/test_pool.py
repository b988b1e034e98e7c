"""The thread pool: how many threads, forks, and a quiet start."""

import os
import subprocess
import sys

import numpy as np
import pytest

import buropt as bo
from buropt import _core


def loss(x, a):
    return np.sum(np.tanh(a * x))


def oracle(threads=2):
    rng = np.random.default_rng(0)
    return bo.compile(loss, np.ones(50), (rng.standard_normal((4000, 50)),), threads=threads)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forked_child_computes_the_same():
    f = oracle()
    x = np.ones(50)
    want = f.grad(x).tobytes()  # the pool is running now
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, f.grad(x).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    got = b""
    while len(got) < len(want):
        part = os.read(read, len(want) - len(got))
        if not part:
            break
        got += part
    os.close(read)
    assert os.waitpid(child, 0)[1] == 0
    assert got == want
    assert f.grad(x).tobytes() == want  # and the parent goes on


def run(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=os.sep,  # not the checkout: its folder buropt has no compiled core
    )


def test_environment_sets_the_default():
    code = "import buropt._core as c; print(c.default_threads())"
    assert run(code, BUROPT_NUM_THREADS="3").stdout.strip() == "3"
    bad = run(code, BUROPT_NUM_THREADS="many")
    assert "BUROPT_NUM_THREADS must be a whole number from 1 to 256, got 'many'" in bad.stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity")
def test_affinity_limits_the_default():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "import buropt._core as c; print(c.default_threads())"
    )
    assert run(code, BUROPT_NUM_THREADS="").stdout.strip() == "1"


def test_import_starts_no_threads():
    code = (
        "import os; os.environ['OPENBLAS_NUM_THREADS'] = '1';"
        "import buropt; print(len(os.listdir('/proc/self/task')))"
    )
    if not os.path.isdir("/proc/self/task"):
        pytest.skip("needs /proc")
    assert run(code).stdout.strip() == "1"


def test_many_calls_with_changing_thread_counts():
    x = np.ones(50)
    patterns = {oracle(threads).grad(x).tobytes() for threads in (1, 4, 2, 7, 3) for _ in range(5)}
    assert len(patterns) == 1
    assert _core.default_threads() >= 1


def test_daemon_thread_in_a_call_does_not_abort_the_exit():
    code = """
import threading, time
import numpy as np, buropt as bo
A = np.ones((100_000, 20))
f = bo.compile(lambda x, a: np.logaddexp(0, a @ x), np.zeros(20), A)
def work():
    while True:
        f.grad(np.ones(20))
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""
    result = run(code)
    assert result.returncode == 0
    assert "terminate" not in result.stderr
