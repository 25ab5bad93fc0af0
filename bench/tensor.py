"""The tensor-core products of bench/tensor.cu against PyTorch (cuDNN, cuBLAS) in the same run: one JSON line for each.

    python3 bench/tensor.py build/bench_tensor.so [--check]

--check compares results only; otherwise both are timed as well, the median of many launches with a cold L2 cache."""

import ctypes
import json
import sys

import torch
import torch.nn.functional as F
from triton.testing import do_bench

KINDS = ["forward", "data", "weights", "NN", "NT", "TN"]
FIELDS = "kind n size c o kernel stride slices bytes tile_m tile_n warps_m warps_n stages terms whole parts cluster".split()


class Case(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in FIELDS] + [
        ("launch", ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5))
    ]


def integers(*shape):
    return torch.randint(-127, 128, shape, device="cuda", dtype=torch.int8)


def floats_of_8_bits(*shape):
    return torch.randn(shape, device="cuda").to(torch.float8_e4m3fn)


def multiply_floats_of_8_bits(a, b):
    one = torch.ones((), device="cuda")
    return torch._scaled_mm(a, b.T, one, one, out_dtype=torch.bfloat16) if a.element_size() == 1 else a @ b.T


def image(case, n, channels, size):
    if case.bytes == 1:
        return integers(n, channels, size, size).to(memory_format=torch.channels_last)
    dtype = torch.bfloat16 if case.bytes == 2 else torch.float32
    return torch.randn(n, channels, size, size, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)


def convolution(case):
    """Operands, the result of PyTorch as it lies in memory, and the call of PyTorch that gives it."""
    pad, out = case.kernel // 2, (case.size + case.kernel // 2 * 2 - case.kernel) // case.stride + 1
    x = image(case, case.n, case.c, case.size)
    shape = case.o, case.c, case.kernel, case.kernel
    w = integers(*shape) if case.bytes == 1 else (torch.randn(shape, device="cuda") / (case.c * case.kernel**2) ** 0.5).to(x)
    w = w.to(memory_format=torch.channels_last)
    dy = image(case, case.n, case.o, out)

    def gradients(mask, x=x, w=w, dy=dy):
        return torch.ops.aten.convolution_backward(
            dy, x, w, None, [case.stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask
        )

    if KINDS[case.kind] == "forward":
        return x, w, lambda x=x, w=w: F.conv2d(x, w, stride=case.stride, padding=pad)
    if KINDS[case.kind] == "data":
        return dy, w, lambda dy=dy, w=w: gradients([True, False, False], x.to(dy), w, dy)[0]
    return dy, x, lambda dy=dy, x=x: gradients([False, True, False], x, w.to(x), dy)[1]


def plain(case):
    dtype = torch.bfloat16 if case.bytes == 2 else torch.float32
    m, k, n, kind = case.n, case.c, case.o, KINDS[case.kind]
    if type_of(case) == "int8":
        a, b = integers(m, k), integers(n, k)
        return a, b, lambda a=a, b=b: a @ b.T if a.is_floating_point() else torch._int_mm(a, b.T)
    if type_of(case) == "fp8":
        a, b = floats_of_8_bits(m, k), floats_of_8_bits(n, k)
        return a, b, lambda a=a, b=b: multiply_floats_of_8_bits(a, b)
    a = torch.randn((k, m) if kind == "TN" else (m, k), device="cuda").to(dtype)
    b = torch.randn((n, k) if kind == "NT" else (k, n), device="cuda").to(dtype) / k**0.5
    return a, b, lambda a=a, b=b: (a.T if kind == "TN" else a) @ (b.T if kind == "NT" else b)


def distance(result, expected):
    return ((result - expected).norm() / expected.norm()).item()


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = allowed


def type_of(case):
    return {1: "int8" if case.whole else "fp8", 2: "bf16", 4: "tf32" if case.terms == 1 else "tf32x3"}[case.bytes]


def bound_of(case, call, expected):
    """How far a result may be from the exact one: of integers, as far as a float rounds; of two terms, twice as far as PyTorch's in fp32, or 2^-22, which short sums are within."""
    if case.terms == 1:
        return {"int8": 1e-7, "fp8": 5e-3, "bf16": 5e-3, "tf32": 1e-3}[type_of(case)]
    allow_tf32(False)
    bound = max(2 * distance(stored(case, call()).double(), expected), 2**-22)
    allow_tf32(True)
    return bound


def stored(case, result):
    """A result of PyTorch as it lies in memory: channels last."""
    return result.permute(0, 2, 3, 1) if result.dim() == 4 else result


def main():
    library, checking = ctypes.CDLL(sys.argv[1]), "--check" in sys.argv
    library.case_at.restype = ctypes.POINTER(Case)
    torch.backends.cudnn.benchmark = not checking
    allow_tf32(True)
    failed = 0
    for number in range(library.case_count()):
        case = library.case_at(number).contents
        kind = KINDS[case.kind]
        torch.manual_seed(number)
        a, b, call = (plain if case.kind > 2 else convolution)(case)
        expected = stored(case, call(a.double(), b.double()) if checking else call().double())
        slices = kind == "weights" or case.slices > 1
        out = torch.full((case.slices if slices else 1, expected.numel()), float("nan"), device="cuda",
                         dtype=torch.float32 if slices or case.whole else torch.bfloat16 if case.bytes == 1 else a.dtype)
        side = torch.full((case.slices, case.o), float("nan"), device="cuda")
        launch = lambda: case.launch(a.data_ptr(), b.data_ptr(), out.data_ptr(), side.data_ptr(),
                                     torch.cuda.current_stream().cuda_stream)  # noqa: E731
        code = launch()
        torch.cuda.synchronize()
        result = out.double().sum(0).reshape(expected.shape)
        error = distance(result, expected)
        if kind == "weights" and case.n < 64:
            bias = a.double().sum((0, 2, 3))
            error = max(error, distance(side.double().sum(0), bias))
        first = out.clone()
        launch()
        ok = code == 0 and error < bound_of(case, call, expected) and bool((first == out).all())
        failed += not ok
        tile = f"{case.tile_m}x{case.tile_n} {case.warps_m}x{case.warps_n} s{case.stages}"
        if case.parts > 1:
            tile += f", k in {case.parts} parts" + ("" if case.cluster > 1 else " of one block")
        shape = (f"{case.n}x{case.c}x{case.o}" if case.kind > 2 else
                 f"{case.n}x{case.size}x{case.size}x{case.c}->{case.o} {case.kernel}/{case.stride}")
        line = {"kind": kind, "type": type_of(case), "shape": shape, "tile": tile,
                "slices": case.slices, "error": float(f"{error:.2g}"), "ok": ok}
        if not checking:
            outputs = expected.numel() if kind != "weights" else expected.numel()
            size = (case.size + case.kernel // 2 * 2 - case.kernel) // case.stride + 1
            flops = 2.0 * case.n * size**2 * case.o * case.c * case.kernel**2 if case.kind < 3 else 2.0 * outputs * case.c
            ours, theirs = (do_bench(f, warmup=5, rep=25, return_mode="median") for f in (launch, call))
            line |= {"us": round(ours * 1e3, 1), "tflops": round(flops / ours * 1e-9), "torch_us": round(theirs * 1e3, 1),
                     "torch_tflops": round(flops / theirs * 1e-9), "speed": round(theirs / ours, 2)}
        print(json.dumps(line), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 100))
