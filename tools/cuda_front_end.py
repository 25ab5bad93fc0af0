"""nvcc's front end without what comes behind it, a second for a source of CUDA C++; and its kernels alone, without the program around them."""

import re
import subprocess

KERNEL_FLAGS = ["-std=c++17", "-O3", "-prec-div=false", "-prec-sqrt=false", "-fmad=false"]  # as mtc has them (compiler/emit/build/nvcc.c)


def kernels_command(source, output, architectures, includes, *flags):
    """nvcc makes machine code of the kernels."""
    codes = [f"-gencode=arch=compute_{name[3:]},code={name}" for name in architectures]
    return list(map(str, ["nvcc", *KERNEL_FLAGS, *codes, "-fatbin", *includes, *flags, source, "-o", output]))


def front_end_of_cuda(includes):
    """Of all that nvcc would run, the commands that check types: the preprocessor for the host, and the front end. None without nvcc."""
    try:
        done = subprocess.run(["nvcc", "-std=c++17", "-arch=sm_90", "--dryrun", "-c", "m.cu", *includes], capture_output=True, text=True)
    except FileNotFoundError:
        return None
    lines = [line.removeprefix("#$ ") for line in done.stderr.splitlines()]
    path = next(line for line in lines if line.startswith("PATH="))
    preprocess = next(line for line in lines if " -E " in line and "-D__CUDA_ARCH__" not in line)
    check = next(line for line in lines if line.startswith("cudafe++"))
    return re.sub(r'"[^"]*/tmpxft_', '"tmpxft_', "\n".join(["set -e", path, preprocess, check]))
