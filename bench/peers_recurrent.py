#!/usr/bin/env python3
"""Recurrent layers of PyTorch, which are cuDNN's, as bench/recurrent has them: a line of JSON for each training step, in a CUDA graph.

    bench/peers_recurrent.py [--cells lstm,gru] [--units 64,128] [--precisions fp32,bf16] [--repeats 20]
"""
import argparse
import json

import torch
from torch import nn
from torch.nn import functional as F

from peers_graph import captured
from peers_language import autocast, median_us, set_precision

EXAMPLES, STEPS, CLASSES = 64, 100, 10
CELLS = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}


class Reader(nn.Module):
    """What is left of a sequence behind its last step, in classes."""

    def __init__(self, cell, units):
        super().__init__()
        self.states = CELLS[cell](units, units, batch_first=True)
        self.fc = nn.Linear(units, CLASSES)

    def forward(self, x, kind):
        return F.cross_entropy(self.fc(self.states(x)[0][:, -1]), kind)


def step_us(cell, units, precision, repeats):
    set_precision(precision)
    net = Reader(cell, units).cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True, capturable=True)
    x = torch.randn(EXAMPLES, STEPS, units, device="cuda")
    kind = torch.randint(0, CLASSES, (EXAMPLES,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with autocast(precision, "cuda"):
            loss = net(x, kind)
        loss.backward()
        optimizer.step()

    return median_us(captured(step), repeats, inner=5)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="lstm,gru")
    parser.add_argument("--units", default="64,128,256,512")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--repeats", type=int, default=20, help="calls of which the median is reported")
    args = parser.parse_args()
    for cell in args.cells.split(","):
        for units in map(int, args.units.split(",")):
            for precision in args.precisions.split(","):
                us = step_us(cell, units, precision, args.repeats)
                print(json.dumps({"cell": cell, "units": units, "precision": precision, "us": us}), flush=True)


if __name__ == "__main__":
    main()
