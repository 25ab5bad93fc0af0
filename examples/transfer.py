#!/usr/bin/env python3
"""Weights from PyTorch to mtc and back, and memory that both share.

    examples/transfer.py [--target cpu|cuda] [--epochs 5]

A small convolutional network with batch normalization is trained a little in PyTorch. mtc takes its weights and running
statistics, predicts the same, trains on, and gives them back. Names and shapes are PyTorch's. With --target cuda all
tensors stay in the GPU's memory.
"""

import argparse
import copy

import numpy as np
import torch
from torch import nn

import mtc

MODEL = """
param lr = 0.003 in 0..1

data {
  train = npz("shapes.npz")
  image : f32[1, 12, 12]
  label : class[4]
}

model {
  conv1 = conv2d(image, 8, 3, padding = 1, bias = false)
  bn1   = batch_norm(conv1)
  h     = max_pool(relu(bn1), 2)
  fc1   = relu(linear(flatten(h), 32))
  fc2   = linear(fc1, 4)
}

train {
  loss      = cross_entropy(fc2, label)
  metric    = accuracy(fc2, label)
  optimizer = adam(lr)
  batch     = 32
  epochs    = 10
}
"""


class Network(nn.Module):
    """The same in PyTorch."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.fc1 = nn.Linear(8 * 6 * 6, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, image):
        h = torch.max_pool2d(torch.relu(self.bn1(self.conv1(image))), 2)
        return self.fc2(torch.relu(self.fc1(h.flatten(1))))


def make_shapes(count, seed):
    """Images of noise with a bar, a pillar or one of two diagonals somewhere, and which of them it is."""
    rng = np.random.default_rng(seed)
    bar, diagonal = np.outer([0, 1, 0, 0, 0], np.ones(5)), np.eye(5)
    kinds = np.stack([bar, bar.T, diagonal, diagonal[::-1]])
    images = rng.normal(0, 0.2, (count, 1, 12, 12)).astype(np.float32)
    labels = rng.integers(0, 4, count)
    for image, label, (row, column) in zip(images, labels, rng.integers(0, 8, (count, 2))):
        image[0, row : row + 5, column : column + 5] += kinds[label]
    return torch.from_numpy(images), torch.from_numpy(labels.astype(np.uint8))


def train_in_pytorch(network, images, labels, steps):
    optimizer = torch.optim.Adam(network.parameters(), 0.003)
    network.train()
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32, device=images.device) % len(images)
        loss = nn.functional.cross_entropy(network(images[rows]), labels[rows].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def probabilities(network, images):
    """In float64, from the weights as they are: what both would compute if they did not round."""
    exact = copy.deepcopy(network).double().eval()
    with torch.no_grad():
        return torch.softmax(exact(images.double()), 1)


def show_difference(what, network, model, images):
    ours, theirs = model.predict_proba(images), probabilities(network, images)
    accuracy = (model.predict(images) == theirs.argmax(1)).float().mean().item()
    print(f"{what}: largest difference of a probability {(ours - theirs).abs().max().item():.1e}, "
          f"the same class for {100 * accuracy:.1f}%")


def show_pointers(model, images):
    """The same addresses: nothing was copied."""
    for name in ("conv1.weight", "fc1.weight"):
        weight = model.params[name]
        shared = torch.from_dlpack(weight)
        print(f"{name}: in mtc at 0x{weight.data_ptr():x}, in PyTorch at 0x{shared.data_ptr():x}, on {shared.device}, "
              f"shape {tuple(shared.shape)}, strides {shared.stride()}")
        assert shared.data_ptr() == weight.data_ptr()
    before = shared.clone()
    model.fit(images[0], images[1], epochs=1, verbose=0)
    print(f"fc1.weight as PyTorch sees it moved by {(shared - before).abs().max().item():.4f} in an epoch of mtc")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu", help="where both compute")
    parser.add_argument("--epochs", type=int, default=5, help="of training in mtc")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False

    images, labels = (tensor.to(arguments.target) for tensor in make_shapes(2000, seed=1))
    test_images, test_labels = (tensor.to(arguments.target) for tensor in make_shapes(500, seed=2))
    network = Network().to(arguments.target)
    train_in_pytorch(network, images, labels, steps=60)

    model = mtc.compile(MODEL, target=arguments.target, seed=1)
    model.load_state_dict(network.state_dict())
    show_difference("PyTorch's weights in mtc", network, model, test_images)

    model.fit(images, labels, epochs=arguments.epochs, verbose=0)
    accuracy = model.score(test_images, test_labels)
    print(f"after {arguments.epochs} epochs in mtc: accuracy {accuracy:.3f} of unseen images")

    network.load_state_dict({name: torch.from_numpy(array) for name, array in model.state_dict().items()}, strict=False)
    show_difference("mtc's weights in PyTorch", network, model, test_images)
    show_pointers(model, (images, labels))


if __name__ == "__main__":
    main()
