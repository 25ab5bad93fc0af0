"""The Python package as a wheel: what is in it, that it works far from the source tree, and what importing it loads."""

import fcntl
import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

from conftest import MTC, ROOT

pytestmark = pytest.mark.full

PACKAGE = ROOT / "python" / "mtc"
# What must not decide what a test finds: this tree's package, another compiler.
OURS = ("PYTHONPATH", "PYTHONHOME", "MTC_HOME", "MTC_COMPILER", "MAKEFLAGS", "MAKELEVEL", "MFLAGS")
ENVIRONMENT = {**{name: value for name, value in os.environ.items() if name not in OURS}, "CUDA_VISIBLE_DEVICES": ""}


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **{"env": ENVIRONMENT, **options})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} for {sys.executable}: tools/install-deps --all")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, in a folder of its own: another worker may make it anew meanwhile."""
    need("pip", "setuptools", "wheel")
    (ROOT / "build").mkdir(exist_ok=True)
    with open(ROOT / "build" / "wheel.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run("make", "-s", "wheel", f"PYTHON={sys.executable}", cwd=ROOT)
        (made,) = (ROOT / "build" / "wheel").glob("*.whl")
        return Path(shutil.copy(made, tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """A virtual environment with nothing but pip, the wheel and, as there is no network, this Python's NumPy."""
    need("ensurepip")
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=True)
    pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check"]
    run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=folder)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "numpy_of_the_tests.pth").write_text(f"{Path(np.__file__).parent.parent}\n")
    return folder


def version():
    return run(MTC, "--version").split()[1]


def test_what_the_wheel_holds(wheel, tmp_path):
    run("make", "-s", "install-toolchain", f"DESTDIR={tmp_path}", "PREFIX=", cwd=ROOT)
    tools = {f"mtc/_toolchain/{path.relative_to(tmp_path)}" for path in tmp_path.rglob("*") if path.is_file()}
    modules = {f"mtc/{path.name}" for path in PACKAGE.iterdir() if path.is_file()}
    with zipfile.ZipFile(wheel) as content:
        names = {name for name in content.namelist() if ".dist-info/" not in name}
        metadata = content.read(f"mtc-{version()}.dist-info/METADATA").decode()
        mode = content.getinfo("mtc/_toolchain/bin/mtc").external_attr >> 16
    assert names == tools | modules | {"cuda_nn.py"} and "mtc/py.typed" in modules
    assert mode & 0o111
    assert wheel.name == f"mtc-{version()}-py3-none-linux_{platform.machine()}.whl"
    assert "\nRequires-Dist: numpy" in metadata and "\nRequires-Python: >=3.9\n" in metadata


TRAINING = """
import json, sys
import numpy as np
import mtc

random = np.random.default_rng(0)
x = random.normal(size=(400, 8)).astype("f4")
y = (x[:, 0] > 0).astype("i4")
network = mtc.Sequential([mtc.Linear(8, 4), mtc.ReLU(), mtc.Linear(4, 2)], optimizer=mtc.Adam(0.01), batch=16)
network.fit(x, y, epochs=10, verbose=0)
print(json.dumps({"package": mtc.__file__, "accuracy": network.score(x, y), "version": mtc.__version__}))
"""


def test_trains_far_from_the_source_tree(fresh, tmp_path):
    found = json.loads(run(fresh / "bin" / "python", "-c", TRAINING, cwd=tmp_path))
    assert Path(found["package"]).is_relative_to(fresh)
    assert found["accuracy"] > 0.9 and found["version"] == version()
    assert list(tmp_path.iterdir()) == []


def test_command(fresh, tmp_path):
    """`mtc` of the environment is the compiler that the wheel carries."""
    assert run(fresh / "bin" / "mtc", "--version", cwd=tmp_path) == run(MTC, "--version")
    assert run(fresh / "bin" / "python", "-m", "mtc", "--list-options", cwd=tmp_path) == run(MTC, "--list-options")
    refused = subprocess.run([fresh / "bin" / "mtc", "nowhere.mt"], cwd=tmp_path, capture_output=True, env=ENVIRONMENT)
    assert refused.returncode == 66


def test_wheel_without_its_tools():
    command = ["make", "-s", "wheel", "PYTHON=false"]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 2 and "make wheel needs pip, setuptools and wheel for false" in done.stderr


def test_compiler_needs_nothing_but_libc():
    libraries = {line.split()[0].split(".so")[0].rsplit("/", 1)[-1] for line in run("ldd", MTC).splitlines()}
    assert libraries <= {"linux-vdso", "libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64"}


def test_import_loads_nothing_large():
    """Time is measured by bench/python; here is what would cost it."""
    large = ["numpy", "sklearn", "scipy", "pandas", "torch", "matplotlib", "tqdm", "ctypes", "subprocess"]
    command = f"import sys, mtc; print([name for name in {large} if name in sys.modules])"
    environment = {**ENVIRONMENT, "PYTHONPATH": str(PACKAGE.parent)}
    assert run(sys.executable, "-S", "-c", command, env=environment) == "[]\n"


def test_every_public_name_is_there():
    command = "import mtc; print([name for name in dir(mtc) if getattr(mtc, name, None) is None])"
    environment = {**ENVIRONMENT, "PYTHONPATH": str(PACKAGE.parent)}
    assert run(sys.executable, "-c", command, env=environment) == "[]\n"
