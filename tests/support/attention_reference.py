"""Attention in float64, for the tests of kernels: an operand [batch, length, (queries + 2 keys) size], packed as in
kernels_lib/cpu/attention.h."""

from dataclasses import astuple, dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    batch: int
    length: int
    queries: int
    keys: int
    size: int
    causal: bool = False
    window: int = 0

    qkv = property(lambda self: (self.batch, self.length, (self.queries + 2 * self.keys) * self.size))
    out = property(lambda self: (self.batch, self.length, self.queries * self.size))
    sums = property(lambda self: (self.batch, self.length, self.queries))

    def numbers(self):
        return np.array(astuple(self), np.int64)

    def __str__(self):
        window = f", window {self.window}" if self.window else ""
        kind = "causal" if self.causal else "full"
        return f"{self.batch}x{self.length}x{self.queries}x{self.keys}x{self.size} {kind}{window}"


SHAPES = [
    Shape(1, 1, 1, 1, 1, True),
    Shape(2, 7, 2, 1, 5, True),
    Shape(1, 33, 3, 3, 16),
    Shape(2, 64, 2, 2, 16, True),
    Shape(1, 65, 4, 2, 33, True),
    Shape(2, 130, 2, 2, 64, True),
    Shape(1, 130, 6, 2, 128),
    Shape(1, 130, 2, 2, 32, True, 1),
    Shape(1, 130, 4, 1, 16, True, 40),
    Shape(1, 65, 1, 1, 16, False, 9),
    Shape(1, 300, 2, 1, 40, True, 100),
    Shape(4, 135, 2, 1, 16, True, 40),
    Shape(4, 70, 2, 1, 24, False, 9),
    Shape(1, 300, 1, 1, 256, False),
]


def random_qkv(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape.qkv).astype(np.float32).astype(np.float64)


def heads(x, count, size):
    """[batch, length, count * size] -> [batch, count, length, size]"""
    return x.reshape(*x.shape[:2], count, size).transpose(0, 2, 1, 3)


def joined(x):
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def sees(shape):
    """[query, key]"""
    query, key = np.indices((shape.length, shape.length))
    return (~np.bool_(shape.causal) | (key <= query)) & ((shape.window == 0) | (query - key < shape.window))


def dots_of(shape, out, d_out):
    products = heads(out, shape.queries, shape.size) * heads(d_out.astype(np.float64), shape.queries, shape.size)
    return products.sum(-1).transpose(0, 2, 1)


def attention(shape, scale, qkv, d_out):
    """out, sums and the gradient of qkv."""
    all_heads = heads(qkv.astype(np.float64), shape.queries + 2 * shape.keys, shape.size)
    group, first_value = shape.queries // shape.keys, shape.queries + shape.keys
    q = all_heads[:, : shape.queries]
    k, v = (np.repeat(x, group, 1) for x in (all_heads[:, shape.queries : first_value], all_heads[:, first_value:]))
    scores = np.where(sees(shape), scale * q @ k.swapaxes(2, 3), -np.inf)
    top = scores.max(-1, keepdims=True)
    sums = top + np.log(np.exp(scores - top).sum(-1, keepdims=True))
    weights = np.exp(scores - sums)
    out, d_heads = weights @ v, heads(d_out.astype(np.float64), shape.queries, shape.size)
    d_scores = scale * weights * (d_heads @ v.swapaxes(2, 3) - (d_heads * out).sum(-1, keepdims=True))
    d_k, d_v = (x.reshape(x.shape[0], shape.keys, group, *x.shape[2:]).sum(2)
                for x in (d_scores.swapaxes(2, 3) @ q, weights.swapaxes(2, 3) @ d_heads))
    return joined(out), sums[..., 0].transpose(0, 2, 1), joined(np.concatenate([d_scores @ k, d_k, d_v], 1))
