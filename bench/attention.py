"""The attention of bench/attention.cu against PyTorch in the same run: one JSON line for each case.

    python3 bench/attention.py build/bench_attention.so [--check]

--check compares results with attention in float64 only. Otherwise forward, and forward and backward together, are timed as well,
the median of many launches: beside them scaled_dot_product_attention by its own kernels (flash) and by cuDNN, and `plain`
attention of matrix products and a softmax with the scores of all pairs in memory. Operations count as of the pairs that are
seen: 4 size of a pair forward, 2.5 times that backward."""

import ctypes
import json
import math
import os
import sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.testing import do_bench

FIELDS = "batch length queries keys size causal window bytes".split()
POINTER, FLOAT = ctypes.c_void_p, ctypes.c_float


class Case(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int) for name in FIELDS] + [
        ("forward", ctypes.CFUNCTYPE(ctypes.c_int, *[POINTER] * 3, FLOAT, POINTER)),
        ("dots", ctypes.CFUNCTYPE(ctypes.c_int, *[POINTER] * 4)),
        ("gradient", ctypes.CFUNCTYPE(ctypes.c_int, *[POINTER] * 5, FLOAT, POINTER)),
    ]


def seen(case):
    """[query, key]: which keys a query sees."""
    at = torch.arange(case.length, device="cuda")
    apart = at[:, None] - at[None, :]
    mask = torch.ones_like(apart, dtype=torch.bool)
    if case.causal:
        mask &= apart >= 0
    if case.window:
        mask &= apart < case.window
    return mask


class Ours:
    """The operands of a case, its results poisoned, and the calls."""

    def __init__(self, case):
        c, self.case, self.scale = case, case, 1.25 / case.size**0.5
        dtype = torch.bfloat16 if case.bytes == 2 else torch.float32
        positions = (c.batch, c.length)
        self.qkv = torch.randn(*positions, c.queries + 2 * c.keys, c.size, device="cuda").to(dtype)
        self.dout = torch.randn(*positions, c.queries, c.size, device="cuda").to(dtype)
        self.out = torch.full_like(self.dout, math.nan)
        self.dqkv = torch.full_like(self.qkv, math.nan)
        self.sums = torch.full((*positions, c.queries), math.nan, device="cuda")
        self.dots = torch.full_like(self.sums, math.nan)

    def forward(self):
        stream = torch.cuda.current_stream().cuda_stream
        assert self.case.forward(self.qkv.data_ptr(), self.out.data_ptr(), self.sums.data_ptr(), self.scale, stream) == 0

    def gradient(self):
        stream = torch.cuda.current_stream().cuda_stream
        assert self.case.gradient(self.qkv.data_ptr(), self.sums.data_ptr(), self.dots.data_ptr(), self.dout.data_ptr(),
                                  self.dqkv.data_ptr(), self.scale, stream) == 0

    def both(self):
        stream = torch.cuda.current_stream().cuda_stream
        self.forward()
        assert self.case.dots(self.out.data_ptr(), self.dout.data_ptr(), self.dots.data_ptr(), stream) == 0
        self.gradient()

    def heads(self, dtype):
        """Queries, keys, values [batch, head, position, size], keys and values repeated for the query heads that meet them."""
        c = self.case
        q, k, v = self.qkv.to(dtype).split([c.queries, c.keys, c.keys], 2)
        k, v = (x.repeat_interleave(c.queries // c.keys, 2) for x in (k, v))
        return [x.transpose(1, 2).contiguous() for x in (q, k, v)]


def reference(ours):
    """out, sums and dqkv in float64."""
    c = ours.case
    qkv = ours.qkv.double().requires_grad_()
    q, k, v = (x.transpose(1, 2) for x in qkv.split([c.queries, c.keys, c.keys], 2))
    k, v = (x.repeat_interleave(c.queries // c.keys, 1) for x in (k, v))
    scores = (q @ k.mT * ours.scale).masked_fill(~seen(c), -math.inf)
    out = (scores.softmax(-1) @ v).transpose(1, 2)
    (dqkv,) = torch.autograd.grad(out, qkv, ours.dout.double())
    return out.detach(), scores.logsumexp(-1).transpose(1, 2).detach(), dqkv


def error_of(result, expected):
    return ((result.double() - expected).norm() / expected.norm()).item()


def check(ours):
    """Relative errors; and whether a second run gives the same bits."""
    c = ours.case
    ours.both()
    first = [x.clone() for x in (ours.out, ours.sums, ours.dqkv)]
    ours.both()
    same = all(bool((x == y).all()) for x, y in zip(first, (ours.out, ours.sums, ours.dqkv)))
    out, sums, dqkv = reference(ours)
    errors = {"out": error_of(ours.out, out), "sums": (ours.sums - sums).abs().max().item()}
    parts = [c.queries, c.keys, c.keys]
    for name, result, expected in zip(("dq", "dk", "dv"), ours.dqkv.split(parts, 2), dqkv.split(parts, 2)):
        # the only key: its gradient is nothing but what rounding has left
        if c.length > 1 and c.window != 1 or name == "dv":
            errors[name] = error_of(result, expected)
    most = 1.5e-2 if c.bytes == 2 else 2e-5
    return {name: float(f"{e:.2g}") for name, e in errors.items()}, same and all(e < most for e in errors.values())


def plain(q, k, v, mask, scale):
    return (q @ k.mT * scale).masked_fill(~mask, -math.inf).softmax(-1) @ v


def peers(ours):
    """name -> attention of q, k, v."""
    c, mask = ours.case, seen(ours.case)

    def by(backend):
        def call(q, k, v):
            with sdpa_kernel(backend):
                return F.scaled_dot_product_attention(q, k, v, is_causal=bool(c.causal), scale=ours.scale)

        return call

    return {"flash": by(SDPBackend.FLASH_ATTENTION), "cudnn": by(SDPBackend.CUDNN_ATTENTION),
            "plain": lambda q, k, v: plain(q, k, v, mask, ours.scale)}


def median(call):
    return do_bench(call, warmup=10, rep=60, return_mode="median")


def speeds(ours):
    """TFLOP/s forward, and forward and backward."""
    c = ours.case
    work = 4e-9 * c.batch * c.queries * c.size * (c.length**2 / 2 if c.causal else c.length**2)
    forward, both, gradient = median(ours.forward), median(ours.both), median(ours.gradient)
    result = {"ours": [round(work / forward), round(3.5 * work / both)], "gradient": round(2.5 * work / gradient)}
    result["ours_us"] = [round(forward * 1e3), round(both * 1e3), round(gradient * 1e3)]
    q, k, v = (x.requires_grad_() for x in ours.heads(ours.qkv.dtype))
    dout = ours.dout.transpose(1, 2).contiguous()
    for name, call in peers(ours).items():
        try:
            with torch.no_grad():
                forward = median(lambda: call(q, k, v))
            both = median(lambda: torch.autograd.grad(call(q, k, v), (q, k, v), dout))
            result[name] = [round(work / forward), round(3.5 * work / both)]
        except RuntimeError as error:
            result[name] = str(error).splitlines()[0][:60]
    return result


def main():
    library, checking = ctypes.CDLL(sys.argv[1]), "--check" in sys.argv
    library.case_at.restype = ctypes.POINTER(Case)
    failed = 0
    for number in range(library.case_count()):
        case = library.case_at(number).contents
        torch.manual_seed(number)
        ours = Ours(case)
        line = {name: getattr(case, name) for name in FIELDS}
        if checking:
            errors, ok = check(ours)
            failed += not ok
            line |= {"errors": errors, "ok": ok}
        else:
            line |= speeds(ours)
        print(json.dumps(line), flush=True)
    return failed


if __name__ == "__main__":
    status = min(main(), 100)
    # Not sys.exit: a thread of PyTorch's autograd that asks for the interpreter while that is being torn down ends the process
    # with "terminate called without an active exception" (pytorch/pytorch#38230), whatever the status was.
    sys.stdout.flush()
    os._exit(status)
