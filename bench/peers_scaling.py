#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel for a model of bench/scaling: how long a step takes on some GPUs of one host.

    torchrun --nproc-per-node 4 bench/peers_scaling.py --work gpt2 --gpus 1,2,4 [--go FILE] [--device cpu --tiny]

Everything is compiled and has made its first steps before the line {"ready": true}; then the job waits until FILE is there,
with no work on its GPUs, so that jobs of several models can be compiled at a time and be measured one after the other. On one
GPU the network is compiled, without DDP. On more it is compiled around DDP, whose sums go on beside the backward pass, and
within it, where the graph stays whole; mnist is also plain, and captured in a CUDA graph. Prints a JSON line for each mode
and number of GPUs: microseconds a step, the median of five runs.
"""
import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

from peers_graph import captured
from peers_language import GPT, GPT2, adamw
from peers_vision import ResNet18

RUNS, WARM_UP = 5, 11  # steps; DDP asks for as many before a capture


class Classifier(nn.Module):
    """A network of images to the mean loss of a batch."""

    def __init__(self, network, smoothing):
        super().__init__()
        self.network, self.smoothing = network, smoothing

    def forward(self, x, y):
        return F.cross_entropy(self.network(x), y, label_smoothing=self.smoothing)


class Language(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.network = GPT(**sizes)

    def forward(self, windows):
        return self.network(windows)


@dataclass
class Work:
    """examples: of a GPU; network(), and batch(examples, device) for it; optimizer(network); steps: of a run."""
    examples: int
    precision: str
    steps: int
    network: Callable
    batch: Callable
    optimizer: Callable
    clip: float = 0.0
    modes: tuple = ("compile(DDP)", "DDP(compile)")


def gpt2(tiny):
    sizes = {"layers": 2, "heads": 2, "width": 32, "context": 32, "vocab": 128} if tiny else GPT2 | {"vocab": 50304}
    return Work(2 if tiny else 32, "bf16", 8, lambda: Language(sizes),
                lambda n, device: (torch.randint(0, sizes["vocab"], (n, sizes["context"] + 1), device=device),),
                lambda net: adamw(net, 0.95, fused=True), clip=1.0)


def resnet(examples, size, classes, small, steps):
    def batch(n, device):
        x = torch.randn(n, 3, size, size, device=device).to(memory_format=torch.channels_last)
        return x, torch.randint(0, classes, (n,), device=device)

    return Work(examples, "bf16", steps, lambda: Classifier(ResNet18(classes, small), 0.1).to(memory_format=torch.channels_last), batch,
                lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4, fused=True))


def mnist(examples):
    def network():
        return Classifier(nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)), 0.0)

    def batch(n, device):
        return torch.randn(n, 784, device=device), torch.randint(0, 10, (n,), device=device)

    def optimizer(net):
        captures = next(net.parameters()).is_cuda
        return torch.optim.Adam(net.parameters(), lr=1e-3, fused=True, **({"capturable": True} if captures else {}))

    return Work(examples, "fp32", 500, network, batch, optimizer, modes=("compile(DDP)", "DDP", "DDP in a CUDA graph"))


def work_of(name, tiny):
    if name == "gpt2":
        return gpt2(tiny)
    if name == "mnist":
        return mnist(64)
    if name == "resnet18_cifar":
        return resnet(2 if tiny else 512, 32, 10, True, 40)
    return resnet(2 if tiny else 256, 64 if tiny else 224, 1000, False, 25)


# ---- a step of one mode on some GPUs ----


def training_step(work, net, batch, device):
    optimizer = work.optimizer(net)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16, enabled=work.precision == "bf16"):
            loss = net(*batch)
        loss.backward()
        if work.clip:
            torch.nn.utils.clip_grad_norm_(net.parameters(), work.clip, foreach=True)
        optimizer.step()

    return step


def wrapped(net, mode, group, device):
    if "DDP" not in mode:
        return torch.compile(net) if "compile" in mode else net
    own = {"process_group": group, "gradient_as_bucket_view": True, **({"device_ids": [device.index]} if device.type == "cuda" else {})}
    if mode == "compile(DDP)":
        return torch.compile(DistributedDataParallel(net, **own))
    return DistributedDataParallel(torch.compile(net) if mode == "DDP(compile)" else net, **own)


def prepared(work, mode, group, device):
    """The step, after its first ones. What is captured was made on another stream, as DDP wants it."""
    torch.manual_seed(0)
    batch = work.batch(work.examples, device)
    stream = torch.cuda.Stream() if "graph" in mode else None
    with torch.cuda.stream(stream):
        net = work.network().to(device)
        step = training_step(work, wrapped(net, mode, group, device), batch, device)
        for _ in range(WARM_UP if stream else 3):
            step()
    if not stream:
        return step
    torch.cuda.current_stream().wait_stream(stream)
    return captured(step)


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def median_us(step, steps, group, device):
    for _ in range(max(3, steps // 2)):
        step()
    times = []
    for _ in range(RUNS):
        if group:
            dist.barrier(group)
        wait(device)
        began = time.perf_counter()
        for _ in range(steps):
            step()
        wait(device)
        times.append((time.perf_counter() - began) / steps)
    return 1e6 * statistics.median(times)


# ---- all ----


def cases_of(work, counts, cuda, wanted):
    """A captured one comes last: where it fails, nothing is lost."""
    modes = [mode for mode in work.modes if (cuda or "graph" not in mode) and (not wanted or mode in wanted)]
    alone = ["compile", "CUDA graph"] if cuda and len(work.modes) > 2 else ["compile"]
    cases = [(mode, count) for count in counts for mode in (modes if count > 1 else alone)]
    return sorted(cases, key=lambda case: "graph" in case[0])


def say(rank, **line):
    if rank == 0:
        print(json.dumps(line), flush=True)


def wait_for(file):
    while file and not os.path.exists(file):
        time.sleep(0.02)


def measure(args, device):
    rank, work = dist.get_rank(), work_of(args.work, args.tiny)
    cases = cases_of(work, args.gpus, device.type == "cuda", args.modes)
    groups = {count: dist.new_group(list(range(count))) for count in args.gpus if count > 1}
    steps = {}
    for mode, count in cases:
        if rank < count and "graph" not in mode:
            steps[mode, count] = prepared(work, mode, groups.get(count), device)
            print(f"{args.work}: {mode}, {count} GPUs: compiled", file=sys.stderr, flush=True) if rank == 0 else None
    wait(device)
    dist.barrier()
    wait(device)
    say(rank, ready=True, work=args.work)
    wait_for(args.go)
    torch.backends.cudnn.benchmark = True  # what cuDNN tries is not disturbed by other jobs any more
    for mode, count in cases:
        if rank < count:
            step = steps.get((mode, count)) or prepared(work, mode, groups.get(count), device)
            us = median_us(step, 2 if args.tiny else work.steps, groups.get(count), device)
            say(rank, work=args.work, peer=f"PyTorch {mode}", gpus=count, us=round(us, 2), batch=count * work.examples,
                examples_per_second=round(1e6 * count * work.examples / us, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", required=True, choices=["gpt2", "resnet18_cifar", "resnet18", "mnist"])
    parser.add_argument("--gpus", required=True, type=lambda text: [int(count) for count in text.split(",")])
    parser.add_argument("--modes", type=lambda text: text.split(","), help="of several GPUs; each is compiled anew [all]")
    parser.add_argument("--go", type=Path, help="a file that is there once the GPUs are free")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: do these lines run? Not for numbers")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local) if args.device == "cuda" else torch.device("cpu")
    if args.device == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if args.device == "cuda" else "gloo", **({"device_id": device} if args.device == "cuda" else {}))
    measure(args, device)
    sys.stdout.flush()
    os._exit(0)  # destroying NCCL's groups behind captured graphs may wait for ever


if __name__ == "__main__":
    main()
