#!/usr/bin/env python3
"""What PyTorch and JAX need for the models of bench/run: data on the device, the same batch and optimizer, strict fp32.

    MTC_DATA_DIR=... python3 bench/peers.py --device cuda|cpu [--work mnist,xor,sales] [--threads N]

Prints a JSON line per peer and work. A peer that is not installed is reported as absent, not skipped in silence.
"""
import argparse
import gzip
import json
import os
import time
from dataclasses import dataclass
from typing import Callable

import numpy as np


@dataclass
class Work:
    """sizes: of the layers; data() gives x, y and, where accuracy is asked for, test x and y."""
    sizes: tuple
    activation: str
    loss: str
    optimizer: str
    rate: float
    batch: int
    epochs: int
    data: Callable


def read_idx(name, header):
    path = os.path.join(os.environ["MTC_DATA_DIR"], "mnist", name)
    opened = gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")
    with opened as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def mnist():
    images = [read_idx(f"{split}-images-idx3-ubyte", 16).reshape(-1, 784) for split in ("train", "t10k")]
    labels = [read_idx(f"{split}-labels-idx1-ubyte", 8) for split in ("train", "t10k")]
    return images[0] / np.float32(255), labels[0].astype(np.int64), images[1] / np.float32(255), labels[1]


def xor():
    """A thousand copies, so that an epoch is as many steps."""
    x = np.tile(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.float32), (1000, 1))
    return x, (x[:, :1] != x[:, 1:]).astype(np.float32)


def sales():
    """As many rows and inputs as models/sales.mt trains on, of normal numbers."""
    x = np.random.default_rng(1).normal(size=(292800, 19)).astype(np.float32)
    return x, x[:, :1] * x[:, 1:2]


WORKS = {
    "mnist": Work((784, 128, 10), "relu", "cross_entropy", "adam", 1e-3, 64, 10, mnist),
    "xor": Work((2, 4, 1), "sigmoid", "mse", "sgd", 0.5, 4, 5, xor),
    "sales": Work((19, 32, 1), "relu", "mse", "adam", 1e-3, 256, 5, sales),
}


def report(name, peer, seconds, steps, prepare=0.0, accuracy=None):
    print(json.dumps({"work": name, "peer": peer, "us_per_step": round(1e6 * seconds / steps, 2),
                      "train_s": round(seconds, 3), "prepare_s": round(prepare, 2), "accuracy": accuracy}), flush=True)


# ---- PyTorch ----

class Torch:
    def __init__(self, name, device):
        import torch
        self.torch, self.device, self.name, self.work = torch, device, name, WORKS[name]
        torch.backends.cuda.matmul.allow_tf32 = False
        self.x, self.y, *self.test = (torch.tensor(array).to(device) for array in self.work.data())
        self.per_epoch = len(self.x) // self.work.batch

    def model(self):
        nn, sizes = self.torch.nn, self.work.sizes
        activation = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}[self.work.activation]
        self.torch.manual_seed(0)
        return nn.Sequential(nn.Linear(sizes[0], sizes[1]), activation(), nn.Linear(sizes[1], sizes[2])).to(self.device)

    def optimizer(self, model, capturable):
        optim = self.torch.optim
        if self.work.optimizer == "sgd":
            return optim.SGD(model.parameters(), lr=self.work.rate)
        fused = {"fused": True, "capturable": capturable} if self.device == "cuda" else {}
        return optim.Adam(model.parameters(), lr=self.work.rate, **fused)

    def update(self, network, optimizer, rows):
        optimizer.zero_grad(set_to_none=True)
        loss = {"cross_entropy": self.torch.nn.functional.cross_entropy, "mse": self.torch.nn.functional.mse_loss}
        loss[self.work.loss](network(self.x[rows]), self.y[rows]).backward()
        optimizer.step()

    def sync(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def accuracy(self, model):
        if not self.test:
            return None
        with self.torch.no_grad():
            return round(float((model(self.test[0]).argmax(1) == self.test[1]).float().mean()), 4)

    def eager(self, epochs):
        model = self.model()
        optimizer = self.optimizer(model, False)
        began = time.perf_counter()
        for _ in range(epochs):
            order = self.torch.randperm(len(self.x), device=self.device)
            for rows in order[:self.per_epoch * self.work.batch].split(self.work.batch):
                self.update(model, optimizer, rows)
        self.sync()
        seconds = time.perf_counter() - began
        report(self.name, f"torch eager, {self.device}", seconds, epochs * self.per_epoch, accuracy=self.accuracy(model))

    def capture(self, step):
        """The step as a CUDA graph, after the warm-up that libraries need."""
        side = self.torch.cuda.Stream()
        with self.torch.cuda.stream(side):
            for _ in range(5):
                step()
        side.synchronize()
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            step()
        return graph

    def graph(self, epochs, compiled):
        """The whole step in one CUDA graph, the batch gathered inside of it."""
        torch, batch = self.torch, self.work.batch
        model = self.model()
        network = torch.compile(model) if compiled else model
        optimizer = self.optimizer(model, True)
        order = torch.zeros(len(self.x), dtype=torch.long, device="cuda")
        first, offsets = torch.zeros((), dtype=torch.long, device="cuda"), torch.arange(batch, device="cuda")

        def step():
            self.update(network, optimizer, order[(first + offsets) % len(order)])
            first.add_(batch)

        began = time.perf_counter()
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        graph = self.capture(step)
        model.load_state_dict(weights)
        for state in optimizer.state.values():
            for value in state.values():
                if torch.is_tensor(value):
                    value.zero_()
        self.sync()
        prepare = time.perf_counter() - began
        began = time.perf_counter()
        for _ in range(epochs):
            order.copy_(torch.randperm(len(self.x), device="cuda"))
            first.zero_()
            for _ in range(self.per_epoch):
                graph.replay()
        self.sync()
        name = "torch compile + CUDA graph" if compiled else "torch CUDA graph"
        report(self.name, name, time.perf_counter() - began, epochs * self.per_epoch, prepare, self.accuracy(model))


# ---- JAX ----

def jax_scan(name):
    """An epoch is one jitted scan."""
    import jax
    import jax.numpy as jnp
    import optax
    jax.config.update("jax_default_matmul_precision", "highest")
    work = WORKS[name]
    x, y, *test = (jnp.asarray(array) for array in work.data())
    inputs, hidden, outputs = work.sizes
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    uniform = lambda key, fan_in, *shape: jax.random.uniform(key, shape, minval=-fan_in**-0.5, maxval=fan_in**-0.5)
    weights = {"w1": uniform(keys[0], inputs, inputs, hidden), "b1": uniform(keys[1], inputs, hidden),
               "w2": uniform(keys[2], hidden, hidden, outputs), "b2": uniform(keys[3], hidden, outputs)}
    activation = {"relu": jax.nn.relu, "sigmoid": jax.nn.sigmoid}[work.activation]
    forward = lambda w, v: activation(v @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
    each = {"mse": lambda p, t: (p - t) ** 2, "cross_entropy": optax.softmax_cross_entropy_with_integer_labels}[work.loss]
    loss = lambda w, v, t: each(forward(w, v), t).mean()
    optimizer = {"adam": optax.adam, "sgd": optax.sgd}[work.optimizer](work.rate)
    per_epoch = len(x) // work.batch

    @jax.jit
    def epoch(weights, state, key):
        order = jax.random.permutation(key, len(x))[:per_epoch * work.batch].reshape(per_epoch, work.batch)

        def step(carry, rows):
            weights, state = carry
            updates, state = optimizer.update(jax.grad(loss)(weights, x[rows], y[rows]), state)
            return (optax.apply_updates(weights, updates), state), None
        return jax.lax.scan(step, (weights, state), order)[0]

    state = optimizer.init(weights)
    began = time.perf_counter()
    jax.block_until_ready(epoch(weights, state, keys[0]))
    prepare = time.perf_counter() - began
    began = time.perf_counter()
    for number in range(work.epochs):
        weights, state = epoch(weights, state, jax.random.PRNGKey(number))
    jax.block_until_ready(weights)
    seconds = time.perf_counter() - began
    accuracy = round(float((forward(weights, test[0]).argmax(1) == test[1]).mean()), 4) if test else None
    report(name, "jax scan over an epoch", seconds, work.epochs * per_epoch, prepare, accuracy)


def torch_peers(name, device, threads):
    peer = Torch(name, device)
    if threads:
        peer.torch.set_num_threads(threads)
    if device == "cpu":
        peer.eager(peer.work.epochs)
        return
    peer.eager(1)
    peer.graph(peer.work.epochs, compiled=False)
    peer.graph(peer.work.epochs, compiled=True)


def attempt(peer, call):
    try:
        call()
    except ImportError:
        print(json.dumps({"peer": peer, "absent": True}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--work", default="mnist")
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    for name in args.work.split(","):
        attempt("torch", lambda: torch_peers(name, args.device, args.threads))
        if args.device == "cuda":
            attempt("jax", lambda: jax_scan(name))


if __name__ == "__main__":
    main()
