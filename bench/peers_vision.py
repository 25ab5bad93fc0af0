#!/usr/bin/env python3
"""What PyTorch needs for the vision models of bench/vision: data on the device, channels last, the best of its modes.

    python3 bench/peers_vision.py [--work cnn,forward,train] [--device cuda|cpu] [--batches 1,4] [--precisions bf16]

cnn: a training step of models/cnn.mt. forward: ResNet-18 at 224 x 224, by batch and precision. train: steps of ResNet-18 for
32 x 32 and 224 x 224 by precision, and of three other networks in bf16. Prints a JSON line of versions and one per
figure: microseconds of the median, images per second, peak memory; and on stderr how far it is.
"""
import argparse
import gc
import itertools
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from peers_graph import captured

PRECISIONS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16}


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc1 = nn.Linear(784, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Basic(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet18(nn.Module):
    """With torchvision's names of weights; `small`: for images of 32 x 32."""

    def __init__(self, classes, small=False):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False) if small else nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.pool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        channels = 64
        for stage, width in enumerate((64, 128, 256, 512), 1):
            stride = 1 if stage == 1 else 2
            setattr(self, f"layer{stage}", nn.Sequential(Basic(channels, width, stride), Basic(width, width, 1)))
            channels = width
        self.fc = nn.Linear(512, classes)

    def forward(self, x):
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        for stage in range(1, 5):
            x = getattr(self, f"layer{stage}")(x)
        return self.fc(x.mean((2, 3)))


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.narrow, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.middle, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.wide, self.bn3 = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width)
        self.shortcut = nn.Identity()
        if stride != 1 or channels != 4 * width:
            self.shortcut = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn2(self.middle(F.relu(self.bn1(self.narrow(x))))))
        return F.relu(self.bn3(self.wide(y)) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for block in range(count):
                layers.append(Bottleneck(channels, width, 1 if block else stride))
                channels = 4 * width
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(channels, 1000)

    def forward(self, x):
        return self.fc(self.layers(x).mean((2, 3)))


class Residual(nn.Module):
    """Inverted: many channels inside, each convolved alone."""

    def __init__(self, channels, width, stride):
        super().__init__()
        many = 4 * channels
        self.adds = stride == 1
        self.layers = nn.Sequential(
            nn.Conv2d(channels, many, 1, bias=False), nn.BatchNorm2d(many), nn.ReLU(),
            nn.Conv2d(many, many, 3, stride, 1, groups=many, bias=False), nn.BatchNorm2d(many), nn.ReLU(),
            nn.Conv2d(many, width, 1, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        return x + self.layers(x) if self.adds else self.layers(x)


class Inverted(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
        channels = 32
        for width in (24, 48, 96):
            layers += [Residual(channels, width, 2), Residual(width, width, 1)]
            channels = width
        self.layers, self.fc = nn.Sequential(*layers), nn.Linear(channels, 100)

    def forward(self, x):
        return self.fc(self.layers(x).mean((2, 3)))


def twice(channels, width):
    return nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                         nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3, self.down4 = twice(3, 32), twice(32, 64), twice(64, 128), twice(128, 256)
        self.up3, self.up2, self.up1 = twice(256 + 128, 128), twice(128 + 64, 64), twice(64 + 32, 32)
        self.drawn = nn.Conv2d(32, 3, 1)

    def forward(self, x):
        def up(y, skip):
            return torch.cat([F.interpolate(y, scale_factor=2), skip], 1)
        down1 = self.down1(x)
        down2 = self.down2(F.max_pool2d(down1, 2))
        down3 = self.down3(F.max_pool2d(down2, 2))
        up3 = self.up3(up(self.down4(F.max_pool2d(down3, 2)), down3))
        return self.drawn(self.up1(up(self.up2(up(up3, down2)), down1)))


@dataclass(frozen=True)
class Trained:
    network: Callable
    size: int  # of images
    classes: int  # 0: the image itself is what it learns
    batch: int
    precisions: tuple = ("fp32", "tf32", "bf16")


TRAINED = {"resnet18_cifar": Trained(lambda: ResNet18(10, True), 32, 10, 512),
           "resnet18": Trained(lambda: ResNet18(1000), 224, 1000, 256),
           "resnet50": Trained(ResNet50, 224, 1000, 128, ("bf16",)),
           "inverted": Trained(Inverted, 96, 100, 256, ("bf16",)),
           "unet128": Trained(UNet, 128, 0, 32, ("bf16",))}


def wait(device):
    if device == "cuda":
        torch.cuda.synchronize()


def median_us(call, device, repeats):
    for _ in range(min(8, repeats)):
        call()
    times = []
    for _ in range(repeats):
        wait(device)
        began = time.perf_counter()
        call()
        wait(device)
        times.append(time.perf_counter() - began)
    return 1e6 * statistics.median(times)


def set_precision(precision):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"


def report(work, peer, precision, batch, us, **more):
    print(f"{peer}: {work}, {precision}, batch {batch}: {us:.0f} us", file=sys.stderr)
    print(json.dumps({"work": work, "peer": peer, "precision": precision, "batch": batch, "us": round(us, 2),
                      "images_per_second": round(1e6 * batch / us), **more}), flush=True)


def training_step(net, optimizer, x, y, precision, device):
    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
            out = net(x)
            loss = F.mse_loss(out.float(), x) if y is None else F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
    return step


def measure_cnn(device, repeats):
    set_precision("fp32")
    x, y = torch.randn(64, 1, 28, 28, device=device), torch.randint(0, 10, (64,), device=device)
    for mode in ("eager", "graph", "compile and graph") if device == "cuda" else ("eager",):
        model = Cnn().to(device)
        on_device = {"fused": True, "capturable": True} if device == "cuda" else {}
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **on_device)
        step = training_step(torch.compile(model) if "compile" in mode else model, optimizer, x, y, "fp32", device)
        call = captured(step) if "graph" in mode else step
        inner = 20
        us = median_us(lambda: [call() for _ in range(inner)], device, repeats) / inner
        report("cnn train", f"PyTorch {mode}", "fp32", 64, us)


def measure_forward(device, precision, batches, repeats):
    """A network compiled for each batch, and the plain one as a CUDA graph."""
    set_precision(precision)
    model = ResNet18(1000).to(device).to(memory_format=torch.channels_last).to(PRECISIONS[precision]).eval()
    fast = torch.compile(model, mode="reduce-overhead", dynamic=False)
    for batch in batches:
        x = torch.randn(batch, 3, 224, 224, device=device, dtype=PRECISIONS[precision]).to(memory_format=torch.channels_last)
        with torch.no_grad():
            if device == "cpu":
                report("resnet18 forward", "PyTorch eager", precision, batch, median_us(lambda: model(x), device, min(repeats, 5)))
                continue
            report("resnet18 forward", "PyTorch graph", precision, batch, median_us(captured(lambda: model(x)), device, repeats))
            report("resnet18 forward", "PyTorch compile", precision, batch, median_us(lambda: fast(x), device, repeats))


def measure_training(name, precision, repeats):
    """Compiled, and that as a CUDA graph."""
    set_precision(precision)
    trained = TRAINED[name]
    batch, size = trained.batch, trained.size
    model = trained.network().to("cuda").to(memory_format=torch.channels_last).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, fused=True)
    x = torch.randn(batch, 3, size, size, device="cuda").to(memory_format=torch.channels_last)
    y = torch.randint(0, trained.classes, (batch,), device="cuda") if trained.classes else None
    step = training_step(torch.compile(model), optimizer, x, y, precision, "cuda")
    for _ in range(2):  # cuDNN tries its algorithms in the first
        step()
    torch.cuda.reset_peak_memory_stats()
    us = median_us(step, "cuda", repeats)
    memory = torch.cuda.max_memory_allocated()
    report(f"{name} train", "PyTorch compile", precision, batch, us, memory=memory)
    try:
        us = median_us(captured(step), "cuda", repeats)
        report(f"{name} train", "PyTorch compile and graph", precision, batch, us, memory=memory)
    except RuntimeError as error:  # a graph has memory of its own, which there may not be
        print(f"PyTorch compile and graph: {name} train, {precision}: {error}", file=sys.stderr)


def forget():
    """Compiled networks and their memory."""
    torch.compiler.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default="cnn,forward,train")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batches", default="1,4,16,32,64,256", help="of forward")
    parser.add_argument("--precisions", default="fp32,tf32,bf16", help="of forward and train; on the CPU, fp32")
    parser.add_argument("--models", default=",".join(TRAINED), help="of train")
    parser.add_argument("--repeats", type=int, default=30, help="calls of which the median is reported")
    args = parser.parse_args()
    print(json.dumps({"torch": torch.__version__, "numpy": np.__version__}), flush=True)
    torch.backends.cudnn.benchmark = True
    work, cuda = args.work.split(","), args.device == "cuda"
    precisions = args.precisions.split(",") if cuda else ["fp32"]
    if "cnn" in work:
        measure_cnn(args.device, args.repeats)
    for precision in precisions if "forward" in work else ():
        measure_forward(args.device, precision, [int(batch) for batch in args.batches.split(",")], args.repeats)
        forget()
    for name, precision in itertools.product(args.models.split(","), precisions) if "train" in work and cuda else ():
        if precision in TRAINED[name].precisions:
            measure_training(name, precision, args.repeats)
            forget()


if __name__ == "__main__":
    main()
