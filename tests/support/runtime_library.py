"""The runtime as a static library for programs of tests: that of `make`, or with other flags, compiled once for all of them and for
all workers, and again where its sources are newer."""

import fcntl
import os
import subprocess

from conftest import ROOT

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
FLAGS = ["-O0", "-g1", "-Werror"]  # lines for reports: all that is known of variables takes as long again


def runtime_library(*flags):
    if not flags:
        return ROOT / "build" / "libmtc_runtime.a"
    name = "-".join(["runtime", *(flag.strip("-").replace("=", "-").replace(",", "-") for flag in flags)])
    folder = ROOT / "build" / "tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    # Called by another make, this one would look for the other's jobs.
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", f"-j{len(os.sched_getaffinity(0))}", f"BUILD={folder}",
                        f"CFLAGS={' '.join([*FLAGS, *flags])}", f"PROGRAM_FLAGS={' '.join(['-O0', *flags])}",
                        folder / "libmtc_runtime.a"], cwd=ROOT, env=environment,
                       check=True, stdout=subprocess.DEVNULL)
    return folder / "libmtc_runtime.a"


def build_program(output, sources, *flags, library_flags=()):
    """Links these sources, compiled with the flags, and the library, compiled with its own."""
    library = [runtime_library(*library_flags)]
    if "-shared" in flags:  # offers all of it
        library = ["-Wl,--whole-archive", *library, "-Wl,--no-whole-archive"]
    subprocess.run(["cc", "-std=c11", "-D_XOPEN_SOURCE=700", "-Wall", "-Wextra", "-Wpedantic", *FLAGS, "-fPIC", *library_flags,
                    f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib", *flags, *sources, *library, "-o", output, "-lm", "-ldl",
                    "-lpthread"], check=True)
    return output
