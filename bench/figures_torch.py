#!/usr/bin/env python3
"""What PyTorch needs for the parts of bench/figures: a JSON line for each figure, named by its part.

    python3 bench/figures_torch.py PART... [--sales FOLDER]

Calls on the GPU are CUDA graphs of eager kernels, strict fp32 unless it says bf16; on the CPU all cores. MNIST is found as
bench/peers.py finds it.
"""
import argparse
import csv
import datetime
import itertools
import json
import os
import statistics
import time

import numpy as np
import torch
import torch.nn.functional as F

from figures_ours import BATCHES, BLOCKS, ELEMENTS, SIDE, SIZES
from peers import mnist
from peers_graph import captured
from peers_vision import Cnn, ResNet18

CUDA = torch.cuda.is_available()


def report(part, **figures):
    print(json.dumps({"part": part, **figures}), flush=True)


def gpu_us(call):
    """The median of seven runs, each long enough to hide what begins it."""
    replay = captured(call)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def run(times):
        events[0].record()
        for _ in range(times):
            replay()
        events[1].record()
        events[1].synchronize()
        return 1e3 * events[0].elapsed_time(events[1]) / times
    times = int(min(max(3e4 / max(run(3), 1), 1), 500))
    return statistics.median(run(times) for _ in range(7))


def cpu_us(call, seconds=0.3):
    call()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def numpy_product(size):
    a, b = (np.random.default_rng(i).random((size, size), np.float32) for i in (1, 2))
    return cpu_us(lambda: a @ b)


def products():
    for size in SIZES:
        a, b = torch.rand(size, size), torch.rand(size, size)
        row = {"size": size, "cpu_torch_us": cpu_us(lambda: torch.mm(a, b)), "cpu_numpy_us": numpy_product(size)}
        if CUDA:
            x, y, out = a.cuda(), b.cuda(), torch.empty(size, size, device="cuda")
            row["torch_us"] = gpu_us(lambda: torch.mm(x, y, out=out))
        report("products", **row)


OPERATIONS = {
    "relu(x)": lambda x, z: F.relu(x),
    "gelu(x)": lambda x, z: F.gelu(x, approximate="tanh"),
    "x + z": lambda x, z: x + z,
    "softmax(x)": lambda x, z: x.softmax(-1),
    "layer_norm(x)": lambda x, z: F.layer_norm(x, x.shape[-1:], z[0], z[1]),
    "sum(x)": lambda x, z: x.sum(-1),
    "max(x)": lambda x, z: x.amax(-1),
}


def elements():
    x, z = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    for name in ELEMENTS:
        row = {"operation": name, "cpu_torch_us": cpu_us(lambda: OPERATIONS[name](x, z))}
        if CUDA:
            on_gpu = x.cuda(), z.cuda()
            row["torch_us"] = gpu_us(lambda: OPERATIONS[name](*on_gpu))
        report("elements", **row)


# ---- ResNet-18 ----

def prefix(blocks):
    """As bench/resnet18_prefix.mt."""
    model = ResNet18(1000).eval()
    layers = [block for stage in range(1, 5) for block in getattr(model, f"layer{stage}")][:blocks]
    width = layers[-1].bn2.num_features if layers else 64
    model.fc = torch.nn.Linear(width, 1000)

    def forward(x):
        x = model.pool(F.relu(model.bn1(model.conv1(x))))
        for layer in layers:
            x = layer(x)
        return model.fc(x.mean((2, 3)))
    model.forward = forward
    return model


def forward_row(part, batch, blocks, target):
    device, number = ("cpu", torch.float32) if target == "cpu" else ("cuda", torch.bfloat16 if target == "bf16" else torch.float32)
    model = prefix(blocks).to(device, number).to(memory_format=torch.channels_last)
    x = torch.rand(batch, 3, 224, 224, device=device, dtype=number).to(memory_format=torch.channels_last)
    with torch.no_grad():
        if target == "cpu":
            return report(part, batch=batch, blocks=blocks, target=target, torch_us=cpu_us(lambda: model(x)))
        model(x)
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        model(x)
        memory = torch.cuda.max_memory_allocated()
        return report(part, batch=batch, blocks=blocks, target=target, torch_us=gpu_us(lambda: model(x)), torch_bytes=memory)


def resnet18(part, passes):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    for target, (batch, blocks) in itertools.product(["cpu", *(["fp32", "bf16"] if CUDA else [])], passes):
        forward_row(part, batch, blocks, target)
        if CUDA:
            torch.cuda.empty_cache()


# ---- ten epochs ----

def sales_rows(folder):
    """The inputs of models/sales.mt and the totals."""
    with open(os.path.join(folder, "sales.tsv"), newline="") as file:
        rows = list(csv.reader(file, delimiter="\t"))
    words = {word: i for i, word in enumerate(sorted({row[6] for row in rows}))}
    numbers = np.array([[row[4], row[5]] for row in rows], np.float32)
    days = {row[2]: datetime.date.fromisoformat(row[2]).timetuple().tm_yday for row in rows}
    day = np.array([[days[row[2]]] for row in rows], np.float32)
    category = np.eye(16, dtype=np.float32)[[words[row[6]] for row in rows]]
    return numbers, category, day, np.array([[row[8]] for row in rows], np.float32)


class Sales:
    batch = 256

    def __init__(self, folder, device):
        numbers, category, day, total = sales_rows(folder)
        order = np.random.default_rng(0).permutation(len(total))
        train, test = np.split(order, [len(order) * 8 // 10])

        def normal(values):
            return (values - values[train].mean(0)) / values[train].std(0)
        x = torch.tensor(np.concatenate([normal(numbers), category, normal(day)], 1), device=device)
        y = torch.tensor(normal(total), device=device)
        self.train, self.test, self.scale = (x[train], y[train]), (x[test], y[test]), float(total[train].std())

    def network(self):
        return torch.nn.Sequential(torch.nn.Linear(19, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    loss = staticmethod(F.mse_loss)

    def figure(self, network):
        return self.scale * (network(self.test[0]) - self.test[1]).abs().mean().item()


class Digits:
    batch = 64
    network = Cnn
    loss = staticmethod(F.cross_entropy)

    def __init__(self, folder, device):
        x, y, test_x, test_y = (torch.tensor(array).to(device) for array in mnist())
        self.train, self.test = (x.reshape(-1, 1, 28, 28), y), (test_x.reshape(-1, 1, 28, 28), test_y)

    def figure(self, network):
        return (network(self.test[0]).argmax(1) == self.test[1]).float().mean().item()


def training_step(work, network, optimizer, rows):
    optimizer.zero_grad(set_to_none=True)
    work.loss(network(work.train[0][rows]), work.train[1][rows]).backward()
    optimizer.step()


def zeroed(optimizer):
    for state in optimizer.state.values():
        for value in state.values():
            value.zero_()


def train_epochs(model, work, epochs):
    """Steps as one CUDA graph that gathers its batch, and the figure of the test data after each epoch, as mtc evaluates."""
    torch.manual_seed(0)
    network, batch = work.network().cuda(), work.batch
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True, capturable=True)
    count = len(work.train[0])
    order, first = torch.zeros(count + batch, dtype=torch.long, device="cuda"), torch.zeros((), dtype=torch.long, device="cuda")
    offsets = torch.arange(batch, device="cuda")

    def step():
        training_step(work, network, optimizer, order[first + offsets])
        first.add_(batch)
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    torch.cuda.reset_peak_memory_stats()
    replay = captured(step)
    network.load_state_dict(weights)
    zeroed(optimizer)
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(epochs):
        order[:count] = torch.randperm(count, device="cuda")
        first.zero_()
        for _ in range(count // batch):
            replay()
        with torch.no_grad():
            figure = work.figure(network)
    report("training", model=model, target="fp32", torch_figure=figure, torch_train_s=time.perf_counter() - began,
           torch_bytes=torch.cuda.max_memory_allocated())


def training(folder):
    if CUDA:
        train_epochs("cnn", Digits(folder, "cuda"), 10)
        torch.cuda.empty_cache()
        train_epochs("sales", Sales(folder, "cuda"), 10)


def copies():
    if not CUDA:
        return
    pageable, device = torch.ones(SIDE, SIDE), torch.ones(SIDE, SIDE, device="cuda")
    pinned = torch.ones(SIDE, SIDE).pin_memory()

    def copy(to, source):
        to.copy_(source)
        torch.cuda.synchronize()
    for way, to, source in (("to the device, pageable", device, pageable), ("to the device, pinned", device, pinned),
                            ("from the device, pageable", pageable, device), ("from the device, pinned", pinned, device)):
        report("copies", way=way, torch_us=cpu_us(lambda: copy(to, source)))
    other = torch.empty_like(device)
    report("copies", way="on the device", torch_us=gpu_us(lambda: other.copy_(device)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+")
    parser.add_argument("--sales", default="", help="the folder of sales.tsv")
    args = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    report("about", torch=torch.__version__, numpy=np.__version__)
    measured = {"products": products, "elements": elements, "forward": lambda: resnet18("forward", [(b, 8) for b in BATCHES]),
                "layers": lambda: resnet18("layers", [(64, k) for k in BLOCKS]), "training": lambda: training(args.sales),
                "copies": copies, "attention": lambda: None}
    for part in args.parts:
        measured[part]()


if __name__ == "__main__":
    main()
