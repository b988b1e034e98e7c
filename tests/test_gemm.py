"""The kernel of matrix products alone, as no graph reaches all its forms, by a C++ program."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# As in CMakeLists.txt, but for the level: what is tested does not depend on it.
FLAGS = ["-std=c++20", "-O1", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
COMPILER = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_products_and_transposes_against_plain_loops(target, tmp_path):
    main = tmp_path / "main.cpp"
    main.write_text("int check_gemm();\nint main() { return check_gemm() != 0; }\n")
    sources = [main, ROOT / "tests/cpp/gemm.cpp", *(ROOT / "cpp/math").glob("gemm*.cpp")]
    build = [COMPILER, *FLAGS, f"-march={target}", f"-I{ROOT / 'cpp'}", *sources, "-o", "check"]
    compiled = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True)
    if target != "native" and "march" in compiled.stderr:
        pytest.skip(f"the compiler has no target {target}")
    assert compiled.returncode == 0, compiled.stderr
    run = subprocess.run([tmp_path / "check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
