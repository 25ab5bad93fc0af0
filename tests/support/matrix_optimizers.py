"""Muon and Adafactor in NumPy and float64, each (w, g, state, lr, t, decay) -> w, as their authors write them."""

import numpy as np


def orthogonal(x, iterations):
    x = x / (np.linalg.norm(x) + 1e-7)
    for _ in range(iterations):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x


def muon(momentum=0.95, weight_decay=0.0, nesterov=True, iterations=5, keep_length=False):
    def update(w, g, state, lr, t, decay):
        w = w * len(w) ** 0.5 / np.linalg.norm(w) if keep_length else w
        m = state["m"] = momentum * state.get("m", 0) + (1 - momentum) * g
        u = momentum * m + (1 - momentum) * g if nesterov else m
        u = u.reshape(len(u), -1)
        factor = max(1, u.shape[0] / u.shape[1]) ** 0.5
        return w - lr * (decay * weight_decay * w + factor * orthogonal(u, iterations).reshape(w.shape))

    return update


def rms(x):
    return np.sqrt((x * x).mean())


def adafactor(beta2_decay=0.8, eps=1e-3, clip=1.0, weight_decay=0.0):
    def update(w, g, state, lr, t, decay):
        beta2 = 1 - t**-beta2_decay
        squares = g * g + 1e-30
        if g.ndim > 1:
            squares = squares.reshape(len(g), -1)
            r = state["r"] = beta2 * state.get("r", 0) + (1 - beta2) * squares.mean(1)
            c = state["c"] = beta2 * state.get("c", 0) + (1 - beta2) * squares.mean(0)
            v = (np.outer(r, c) / r.mean()).reshape(g.shape)
        else:
            v = state["v"] = beta2 * state.get("v", 0) + (1 - beta2) * squares
        u = g / np.sqrt(v)
        u = u / max(1, rms(u) / clip)
        return w * (1 - lr * decay * weight_decay) - max(eps, rms(w)) * min(lr, 1 / np.sqrt(t)) * u

    return update
