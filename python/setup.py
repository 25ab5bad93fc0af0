"""What setuptools does not know of the package: mtc itself, with its runtime and kernels, goes into mtc/_toolchain.

Everything else is in pyproject.toml. What the build leaves behind goes into build/python of the source tree.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "python"
NEEDS = "mtc is built with a C compiler, GNU make, flex, bison and protobuf-c; on Debian, tools/install-deps installs them"


def version() -> str:
    """What `mtc --version` will say."""
    header = ROOT / "compiler" / "options.h"
    if not header.exists():
        sys.exit(f"{header} is not there: the package is built from mtc's whole source tree, of which python/ is a part")
    return re.search(r'#define MTC_VERSION "(.+)"', header.read_text()).group(1)


def install_toolchain(folder: Path) -> None:
    """Lays out the compiler, its runtime and its kernels under the folder as `make install` does; makes what is old."""
    command = ["make", "-s", "install-toolchain", f"DESTDIR={folder}", "PREFIX="]
    if "MAKEFLAGS" not in os.environ:  # else this is a part of `make wheel`, which says how many jobs there are
        command.append(f"-j{len(os.sched_getaffinity(0))}")
    try:
        subprocess.run(command, cwd=ROOT, check=True)
    except FileNotFoundError:
        sys.exit(f"there is no 'make' here: {NEEDS}")
    except subprocess.CalledProcessError as failed:
        sys.exit(f"'make' failed with exit code {failed.returncode}: {NEEDS}")


class BuildWithToolchain(build_py):
    """An editable installation uses the compiler of the source tree; any other carries its own."""

    def run(self) -> None:
        editable = getattr(self, "editable_mode", False)
        if not editable:  # a module that is gone from the sources must not stay in the wheel
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()
        if not editable:
            install_toolchain(Path(self.build_lib).resolve() / "mtc" / "_toolchain")


VERSION = version()
OUT.mkdir(parents=True, exist_ok=True)
setup(
    version=VERSION,
    cmdclass={"build_py": BuildWithToolchain},
    options={
        "build": {"build_base": str(OUT)},
        "egg_info": {"egg_base": str(OUT)},
        # Any Python 3 loads the package, but only this kind of machine runs the compiler in it.
        "bdist_wheel": {"plat_name": re.sub(r"[-.]", "_", sysconfig.get_platform())},
    },
)
