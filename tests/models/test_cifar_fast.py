"""models/cifar_fast.mt, narrow, on images that are drawn: a colour and a slope for each class, and noise."""

import numpy as np
from conftest import ROOT


def draw(folder, name, count, seed):
    random = np.random.default_rng(seed)
    label = random.integers(0, 10, count)
    rows, columns = np.mgrid[:32, :32] / 31 - 0.5
    slope = np.cos(label)[:, None, None] * rows + np.sin(2 * label)[:, None, None] * np.abs(columns)
    colour = np.stack([np.cos(label), np.sin(label), np.cos(3 * label)], 1)
    image = 120 + 60 * slope[:, None] + 15 * colour[..., None, None] + random.normal(0, 40, (count, 3, 32, 32))
    records = np.concatenate([label[:, None].astype(np.uint8), np.clip(image, 0, 255).astype(np.uint8).reshape(count, -1)], 1)
    (folder / name).write_bytes(records.tobytes())


def test_it_learns(compile_model, tmp_path):
    folder = tmp_path / "cifar10/cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for k in range(1, 6):
        draw(folder, f"data_batch_{k}.bin", 80, k)
    draw(folder, "test_batch.bin", 100, 6)
    program = compile_model(ROOT / "models/cifar_fast.mt", "--set", "width=4", "--set", "examples=25", "--precision", "fp32")
    flags = ["--data", tmp_path, "--epochs", 4, "--every", 4, "--lr", 0.1, "--head_lr", 17.0, "--bias_lr", 1.3, "--decay", 5e-5]
    shown = program(*flags).stdout
    accuracy = float(shown.split("test  loss")[1].split("accuracy ")[1].split()[0])
    assert accuracy > 0.7, shown
