#!/usr/bin/env python3
"""What PyTorch and JAX need for models/mnist.mt: the same data on the device, batch 64, Adam 1e-3, strict fp32.

    MTC_DATA_DIR=... python3 bench/peers.py --device cuda|cpu [--threads N] [--epochs N]

Prints a JSON line per peer. A peer that is not installed is reported as absent, not skipped in silence.
"""
import argparse
import gzip
import json
import os
import time

import numpy as np

BATCH = 64


def read_idx(name, header):
    path = os.path.join(os.environ["MTC_DATA_DIR"], "mnist", name)
    opened = gzip.open(path + ".gz") if os.path.exists(path + ".gz") else open(path, "rb")
    with opened as file:
        return np.frombuffer(file.read()[header:], np.uint8)


def mnist():
    images = [read_idx(f"{split}-images-idx3-ubyte", 16).reshape(-1, 784) for split in ("train", "t10k")]
    labels = [read_idx(f"{split}-labels-idx1-ubyte", 8) for split in ("train", "t10k")]
    return images, labels


def report(peer, seconds, steps, accuracy, prepare=0.0):
    print(json.dumps({"work": "mnist", "peer": peer, "us_per_step": round(1e6 * seconds / steps, 2),
                      "train_s": round(seconds, 3), "prepare_s": round(prepare, 2), "accuracy": round(accuracy, 4)}),
          flush=True)


class Torch:
    def __init__(self, device):
        import torch
        self.torch, self.device = torch, device
        torch.backends.cuda.matmul.allow_tf32 = False
        images, labels = mnist()
        self.x, self.test_x = (torch.tensor(i).to(device).float() / 255 for i in images)
        self.y, self.test_y = (torch.tensor(l).to(device).long() for l in labels)

    def model(self):
        nn = self.torch.nn
        self.torch.manual_seed(0)
        return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10)).to(self.device)

    def sync(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()

    def accuracy(self, model):
        with self.torch.no_grad():
            return float((model(self.test_x).argmax(1) == self.test_y).float().mean())

    def optimizer(self, model, capturable):
        fused = {"fused": True, "capturable": capturable} if self.device == "cuda" else {}
        return self.torch.optim.Adam(model.parameters(), lr=1e-3, **fused)

    def eager(self, epochs):
        torch = self.torch
        model = self.model()
        optimizer = self.optimizer(model, False)
        began = time.perf_counter()
        steps = 0
        for _ in range(epochs):
            order = torch.randperm(len(self.x), device=self.device)
            for rows in order.split(BATCH):
                optimizer.zero_grad(set_to_none=True)
                torch.nn.functional.cross_entropy(model(self.x[rows]), self.y[rows]).backward()
                optimizer.step()
                steps += 1
        self.sync()
        report(f"torch eager, {self.device}", time.perf_counter() - began, steps, self.accuracy(model))

    def graph(self, epochs, compiled):
        """The whole step in one CUDA graph, the batch gathered inside of it."""
        torch = self.torch
        model = self.model()
        network = torch.compile(model) if compiled else model
        optimizer = self.optimizer(model, True)
        order = torch.zeros(len(self.x), dtype=torch.long, device="cuda")
        first = torch.zeros((), dtype=torch.long, device="cuda")
        offsets = torch.arange(BATCH, device="cuda")

        def step():
            rows = order[first + offsets]
            optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(network(self.x[rows]), self.y[rows]).backward()
            optimizer.step()
            first.add_(BATCH)

        began = time.perf_counter()
        weights = {name: value.clone() for name, value in model.state_dict().items()}
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(5):
                step()
        side.synchronize()
        first.zero_()
        graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(graph):
            step()
        model.load_state_dict(weights)
        for state in optimizer.state.values():
            for value in state.values():
                value.zero_()
        self.sync()
        prepare = time.perf_counter() - began
        began = time.perf_counter()
        per_epoch = len(self.x) // BATCH
        for _ in range(epochs):
            order.copy_(torch.randperm(len(self.x), device="cuda"))
            first.zero_()
            for _ in range(per_epoch):
                graph.replay()
        self.sync()
        name = "torch compile + CUDA graph" if compiled else "torch CUDA graph"
        report(name, time.perf_counter() - began, epochs * per_epoch, self.accuracy(model), prepare)


def jax_scan(epochs):
    """An epoch is one jitted scan."""
    import jax
    import jax.numpy as jnp
    import optax
    jax.config.update("jax_default_matmul_precision", "highest")
    images, labels = mnist()
    x, test_x = (jnp.asarray(i, jnp.float32) / 255 for i in images)
    y, test_y = (jnp.asarray(l, jnp.int32) for l in labels)
    keys = jax.random.split(jax.random.PRNGKey(0), 4)
    uniform = lambda key, fan_in, *shape: jax.random.uniform(key, shape, minval=-fan_in**-0.5, maxval=fan_in**-0.5)
    weights = {"w1": uniform(keys[0], 784, 784, 128), "b1": uniform(keys[1], 784, 128),
               "w2": uniform(keys[2], 128, 128, 10), "b2": uniform(keys[3], 128, 10)}
    forward = lambda w, v: jax.nn.relu(v @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]
    loss = lambda w, v, t: optax.softmax_cross_entropy_with_integer_labels(forward(w, v), t).mean()
    optimizer = optax.adam(1e-3)
    per_epoch = len(x) // BATCH

    @jax.jit
    def epoch(weights, state, key):
        order = jax.random.permutation(key, len(x))[:per_epoch * BATCH].reshape(per_epoch, BATCH)

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
    for number in range(epochs):
        weights, state = epoch(weights, state, jax.random.PRNGKey(number))
    jax.block_until_ready(weights)
    seconds = time.perf_counter() - began
    accuracy = float((forward(weights, test_x).argmax(1) == test_y).mean())
    report("jax scan over an epoch", seconds, epochs * per_epoch, accuracy, prepare)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--epochs", type=int, default=10)
    args = parser.parse_args()
    try:
        peer = Torch(args.device)
        if args.threads:
            peer.torch.set_num_threads(args.threads)
        peer.eager(1)
        peer.eager(args.epochs)
        if args.device == "cuda":
            peer.graph(args.epochs, compiled=False)
            peer.graph(args.epochs, compiled=True)
    except ImportError:
        print(json.dumps({"peer": "torch", "absent": True}))
    if args.device == "cuda":
        try:
            jax_scan(args.epochs)
        except ImportError:
            print(json.dumps({"peer": "jax", "absent": True}))


if __name__ == "__main__":
    main()
