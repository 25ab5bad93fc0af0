#!/usr/bin/env python3
"""Language models in PyTorch, how fast they train and what they learn: a line of JSON for each row.

    bench/peers_language.py [--work char,middle,gpt2] [--precisions fp32,tf32,bf16] [--repeats 30]
    bench/peers_language.py --work learn --text input.txt --weights initial.safetensors [--device cpu]

GPT is models/char_gpt.mt and models/gpt2.mt, with the names and shapes of the published GPT-2. char: a training step of
char_gpt, captured in a CUDA graph, plain and compiled; middle: of six layers of 384. gpt2: training of gpt2 by torch.compile,
with the attention of the library that PyTorch picks, fused AdamW, and a vocabulary padded to a multiple of 64. learn: char_gpt's
thousand steps on the windows that mtc's program draws with seed 0, after the initial weights were written for it.
"""
import argparse
import gc
import json
import math
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from peers_graph import captured

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from random_port import permutation, shuffle_key  # noqa: E402

CHAR = {"layers": 2, "heads": 4, "width": 64, "context": 128, "vocab": 65}
MIDDLE = {"layers": 6, "heads": 6, "width": 384, "context": 256, "vocab": 65}
GPT2 = {"layers": 12, "heads": 12, "width": 768, "context": 1024, "vocab": 50257}
EXAMPLES = {"char": 64, "gpt2": 32}
HEATING_STEPS = 45  # of gpt2, about as long as mtc's own runs: a card at its power limit slows down in the first seconds


class Matrix(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2's files have it."""

    def __init__(self, inputs, outputs, deviation):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(inputs, outputs) * deviation)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return F.linear(x, self.weight.t(), self.bias)


class Attention(nn.Module):
    def __init__(self, width, heads, residual):
        super().__init__()
        self.heads = heads
        self.c_attn = Matrix(width, 3 * width, 0.02)
        self.c_proj = Matrix(width, width, residual)

    def forward(self, x):
        examples, length, width = x.shape
        q, k, v = (part.view(examples, length, self.heads, -1).transpose(1, 2) for part in self.c_attn(x).split(width, 2))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(seen.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self, width, residual):
        super().__init__()
        self.c_fc = Matrix(width, 4 * width, 0.02)
        self.c_proj = Matrix(4 * width, width, residual)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads, residual):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads, residual)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = FeedForward(width, residual)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    """Windows of context + 1 tokens to the loss of each example."""

    def __init__(self, layers, heads, width, context, vocab):
        super().__init__()
        self.wte = nn.Embedding(vocab, width)
        self.wpe = nn.Embedding(context, width)
        self.h = nn.ModuleList(Block(width, heads, 0.02 / math.sqrt(2 * layers)) for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def scores(self, tokens):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def forward(self, windows):
        scores = self.scores(windows[:, :-1])
        return F.cross_entropy(scores.flatten(0, 1), windows[:, 1:].flatten())


# ---- training, as the models' train blocks have it ----


def adamw(net, beta2, decay=0.1, **options):
    """No decay of biases and norms."""
    named = list(net.named_parameters())
    plain = [weight for name, weight in named if name.endswith(".bias") or "ln_" in name]
    others = [weight for name, weight in named if not (name.endswith(".bias") or "ln_" in name)]
    groups = [{"params": others, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, beta2), **options)


def cosine_lr(step, total, lr, final, warmup):
    """cosine_lr(lr, final, warmup) in step 1, 2, ..."""
    warm = max(warmup, 1)
    p = min(max((step - warm) / max(total - warm, 1), 0), 1)
    return (final + (lr - final) * (1 + math.cos(math.pi * p)) / 2) * min(step / warm, 1)


def autocast(precision, device):
    return torch.autocast(device, torch.bfloat16, enabled=precision == "bf16")


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.allow_tf32 = precision == "tf32"


def training_step(net, optimizer, precision, device, clip=1.0):
    """step(windows), the gradients shortened together. `net` may be compiled."""

    def step(windows):
        optimizer.zero_grad(set_to_none=True)
        with autocast(precision, device):
            loss = net(windows)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), clip, foreach=True)
        optimizer.step()
        return loss.detach()

    return step


def train(net, batches, rates, beta2, precision="fp32", device="cpu"):
    """The losses of all steps, each before its update."""
    set_precision(precision)
    optimizer = adamw(net, beta2)
    step, losses = training_step(net, optimizer, precision, device), []
    for windows, rate in zip(batches, rates):
        for group in optimizer.param_groups:
            group["lr"] = rate
        losses.append(step(windows))
    return torch.stack(losses).tolist()


# ---- measuring ----


def median_us(call, repeats, inner=1):
    times = []
    for _ in range(5):
        call()
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / inner)
    return 1e6 * statistics.median(times)


def report(work, peer, precision, tokens, us, **more):
    speed = {"us": us, "tokens_per_second": tokens / us * 1e6} if us else {}
    print(json.dumps({"work": work, "peer": peer, "precision": precision} | speed | more), flush=True)


def windows_of(sizes, examples):
    return torch.randint(0, sizes["vocab"], (examples, sizes["context"] + 1), device="cuda")


# ---- what char_gpt learns ----

STRIDE, EPOCHS = CHAR["context"] - 2, 8


def write_weights(net, path):
    """As safetensors."""
    header, parts, end = {}, [], 0
    for name, weight in net.named_parameters():
        parts.append(weight.detach().cpu().numpy().astype("<f4").tobytes())
        header[name] = {"dtype": "F32", "shape": list(weight.shape), "data_offsets": [end, end + len(parts[-1])]}
        end += len(parts[-1])
    text = json.dumps(header).encode()
    Path(path).write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def windows_of_text(path):
    """Training and test windows, of the first 90% of the text and of the rest; classes are the sorted characters."""
    text = Path(path).read_text()
    place = {character: at for at, character in enumerate(sorted(set(text)))}
    tokens = np.array([place[character] for character in text])
    cut, length = round(0.9 * len(tokens)), CHAR["context"] + 1
    return [np.lib.stride_tricks.sliding_window_view(part, length)[::STRIDE] for part in (tokens[:cut], tokens[cut:])]


def batches_of(windows, examples, epochs, seed, device):
    """In the order of mtc's programs."""
    for epoch in range(epochs):
        order = permutation(shuffle_key(seed, epoch), len(windows))
        for begin in range(0, len(order), examples):
            yield torch.tensor(windows[order[begin : begin + examples]], device=device)


def measure_learning(args, precisions):
    torch.manual_seed(0)
    initial = GPT(**CHAR)
    write_weights(initial, args.weights)
    training, test = windows_of_text(args.text)
    steps = EPOCHS * math.ceil(len(training) / EXAMPLES["char"])
    rates = [cosine_lr(step, steps, 3e-3, 0, 100) for step in range(1, steps + 1)]
    for precision in precisions:
        net = GPT(**CHAR).to(args.device)
        net.load_state_dict(initial.state_dict())
        losses = train(net, batches_of(training, EXAMPLES["char"], EPOCHS, 0, args.device), rates, 0.99, precision, args.device)
        with torch.no_grad(), autocast(precision, args.device):
            parts = [net(torch.tensor(part, device=args.device)).item() * len(part) for part in np.array_split(test, 8)]
        report("learn", "PyTorch", precision, None, None, steps=len(losses), loss=losses[-1], test_loss=sum(parts) / len(test),
               losses=losses[:50])


def forget():
    torch.compiler.reset()
    gc.collect()
    torch.cuda.empty_cache()


def measure_char(work, sizes, precision, repeats):
    set_precision(precision)
    for compiled in False, True:
        net = GPT(**sizes).cuda()
        optimizer = adamw(net, 0.99, fused=True, capturable=True)
        windows = windows_of(sizes, EXAMPLES["char"])
        step = training_step(torch.compile(net) if compiled else net, optimizer, precision, "cuda")
        us = median_us(captured(lambda: step(windows)), repeats, inner=10)
        report(work, "PyTorch compile, graph" if compiled else "PyTorch graph", precision, windows[:, 1:].numel(), us)
        forget()


def measure_gpt2(precision, examples, repeats):
    set_precision(precision)
    sizes = GPT2 | {"vocab": 50304}
    net = GPT(**sizes).cuda()
    optimizer = adamw(net, 0.95, fused=True)
    windows = windows_of(sizes, examples)
    step = training_step(torch.compile(net), optimizer, precision, "cuda")
    step(windows)
    torch.cuda.reset_peak_memory_stats()
    us = median_us(lambda: step(windows), repeats)
    report("gpt2", "PyTorch compile", precision, windows[:, 1:].numel(), us, memory=torch.cuda.max_memory_allocated())
    forget()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default="char,gpt2")
    parser.add_argument("--precisions", default="fp32,tf32,bf16", help="of char, middle and learn; gpt2 is measured in bf16")
    parser.add_argument("--examples", type=int, default=EXAMPLES["gpt2"], help="of a batch of gpt2")
    parser.add_argument("--repeats", type=int, default=30, help="calls of which the median is reported")
    parser.add_argument("--text", help="of learn: the file that char_gpt.mt reads")
    parser.add_argument("--weights", help="of learn: where the initial ones are written")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="of learn")
    args = parser.parse_args()
    work, precisions = args.work.split(","), args.precisions.split(",")
    if "learn" in work:
        measure_learning(args, precisions)
    for name, sizes in ("char", CHAR), ("middle", MIDDLE):
        for precision in precisions if name in work else ():
            measure_char(name, sizes, precision, args.repeats)
    if "gpt2" in work:
        measure_gpt2("bf16", args.examples, max(args.repeats, HEATING_STEPS))


if __name__ == "__main__":
    main()
