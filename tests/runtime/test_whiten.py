"""whiten: filters made of the training data, against NumPy's eigenvectors of the covariance of all patches."""

import numpy as np
import pytest
from fake_data import tensors

pytestmark = pytest.mark.quick


def model(channels, rows, columns, kernel, batch, bias="false"):
    return f"""data {{
  train = npz("d.npz")
  image : u8[{channels}, {rows}, {columns}]
  label : class[3]
}}
model {{
  h      = relu(whiten(random_flip(image), image, {kernel}, bias = {bias}))
  scores = linear(global_avg_pool(h), 3)
}}
train {{
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = {batch}
  epochs    = 1
}}
"""


def images(count, channels, rows, columns, seed=0):
    """Neighbours and channels are alike, as in photographs."""
    random = np.random.default_rng(seed)
    smooth = random.normal(size=(count, channels, rows, columns)).cumsum(1).cumsum(2).cumsum(3)
    return np.clip(110 + 25 * smooth, 0, 255).astype(np.uint8)


def whitened(data, kernel, eps=5e-4):
    """The filters [2 K, C, KH, KW] and the shift of images that 128 is taken from, in float64."""
    patches = np.lib.stride_tricks.sliding_window_view(data.astype(np.float64), kernel, axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5)
    shape, patches = patches.shape[3:], patches.reshape(-1, np.prod(patches.shape[3:]))
    variance, vectors = (x[..., ::-1] for x in np.linalg.eigh(np.cov(patches.T, bias=True)))
    filters = (vectors / np.sqrt(variance + eps * variance.mean())).T
    filters *= np.sign(filters[np.arange(len(filters)), np.abs(filters).argmax(1)])[:, None]
    filters = np.concatenate([filters, -filters])
    return filters.reshape(-1, *shape), filters @ (128 - patches.mean(0))


def trained(program, folder, *flags, threads=2):
    program("--data", folder, "--save", folder / "w", "--quiet", *flags, threads=threads)
    return (folder / "w").read_bytes()


@pytest.mark.parametrize("shape, kernel, batch", [((3, 9, 8), (2, 2), 16), ((1, 40, 39), (3, 2), 128)], ids=["colours", "parts"])
def test_filters(shape, kernel, batch, compile_model, tmp_path, monkeypatch):
    """Also of images whose sums are made of rows, few examples at a time; and the same bytes with data in host memory, and by threads."""
    data = images(150, *shape)
    np.savez(tmp_path / "d.npz", image=data, label=np.arange(150, dtype=np.uint8) % 3)
    program = compile_model(model(*shape, list(kernel), batch))
    content = trained(program, tmp_path)
    found, (filters, shift) = tensors(content), whitened(data, kernel)
    np.testing.assert_allclose(found["h.weight"], filters, rtol=1e-6, atol=1e-6 * np.abs(filters).max())
    np.testing.assert_allclose(found["h.shift"], shift, rtol=1e-6, atol=1e-6 * np.abs(shift).max())
    monkeypatch.setenv("MTC_WINDOW", str(2 * batch * (data[0].size + 1)))
    again = tensors(trained(program, tmp_path, "--data-on", "host", threads=1))
    assert all(np.array_equal(found[name], again[name]) for name in ("h.weight", "h.shift"))


def test_what_comes_out_is_white(compile_model, tmp_path):
    """The same filters in each precision; what a model of them begins with is not correlated, and they stay as they are."""
    data = images(60, 3, 9, 8)
    np.savez(tmp_path / "d.npz", image=data, label=np.arange(60, dtype=np.uint8) % 3)
    text = model(3, 9, 8, 2, 20, bias="true")
    found = tensors(trained(compile_model(text), tmp_path, "--epochs", 5))
    patches = np.lib.stride_tricks.sliding_window_view(data.astype(float), (2, 2), axis=(2, 3)).transpose(0, 2, 3, 1, 4, 5).reshape(-1, 12)
    y = (patches - 128) @ found["h.weight"].reshape(24, 12).T + found["h.shift"]
    variance = np.cov(y[:, :12].T)
    np.testing.assert_allclose(variance, np.diag(np.diag(variance)), atol=1e-4)
    assert 0.9 < np.diag(variance).min() and np.diag(variance).max() < 1.001
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-4)
    assert found["h.bias"].shape == (24,)
    wide = trained(compile_model(text, "--precision", "bf16"), tmp_path)
    assert np.array_equal(tensors(wide)["h.weight"], found["h.weight"])


def test_images_of_one_colour(compile_model, tmp_path):
    np.savez(tmp_path / "d.npz", image=np.full((40, 3, 9, 8), 7, np.uint8), label=np.arange(40, dtype=np.uint8) % 3)
    done = compile_model(model(3, 9, 8, [2, 2], 16))("--data", tmp_path, "--quiet", check=False)
    assert done.returncode == 65 and "'h.weight': the patches of the training images are all the same, of one colour or a single one: nothing whitens them" in done.stderr
