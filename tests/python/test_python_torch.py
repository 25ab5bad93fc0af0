"""PyTorch and the Python package: weights there and back, and memory that both share, on the CPU and on a GPU."""

import copy
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

from conftest import ROOT

torch = pytest.importorskip("torch")

import mtc  # noqa: E402
from mtc import arrays, dlpack  # noqa: E402

pytestmark = pytest.mark.quick

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
TARGETS = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
TRAIN = """
train {
  loss      = cross_entropy(fc2, label)
  metric    = accuracy(fc2, label)
  optimizer = sgd(lr, momentum = 0.9)
  batch     = 16
  epochs    = 2
}
"""
MLP = """
param lr = 0.05 in 0..1

data {
  train = npz("train.npz")
  image : f32[24]
  label : class[5]
}

model {
  fc1 = relu(linear(image, 32))
  fc2 = linear(fc1, 5)
}
""" + TRAIN
CNN = """
param lr = 0.05 in 0..1

data {
  train = npz("train.npz")
  image : f32[3, 8, 8]
  label : class[5]
}

model {
  conv1 = conv2d(image, 6, 3, padding = 1, bias = false)
  bn1   = batch_norm(conv1)
  conv2 = conv2d(max_pool(relu(bn1), 2), 8, 3, padding = 1)
  bn2   = batch_norm(conv2)
  fc1   = relu(linear(flatten(relu(bn2)), 16))
  fc2   = linear(fc1, 5)
}
""" + TRAIN


def torch_mlp():
    return torch.nn.Sequential(torch.nn.Linear(24, 32), torch.nn.ReLU(), torch.nn.Linear(32, 5))


class TorchCNN(torch.nn.Module):
    """The names are those of the model."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = torch.nn.Conv2d(3, 6, 3, padding=1, bias=False), torch.nn.BatchNorm2d(6)
        self.conv2, self.bn2 = torch.nn.Conv2d(6, 8, 3, padding=1), torch.nn.BatchNorm2d(8)
        self.fc1, self.fc2 = torch.nn.Linear(8 * 4 * 4, 16), torch.nn.Linear(16, 5)

    def forward(self, image):
        h = torch.max_pool2d(torch.relu(self.bn1(self.conv1(image))), 2)
        h = torch.relu(self.bn2(self.conv2(h))).flatten(1)
        return self.fc2(torch.relu(self.fc1(h)))


MLP_NAMES = {"0": "fc1", "2": "fc2"}
NETWORKS = {"mlp": (MLP, torch_mlp, (24,), MLP_NAMES), "cnn": (CNN, TorchCNN, (3, 8, 8), None)}


@pytest.fixture(autouse=True)
def exact():
    """Products in fp32, as mtc has them."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)


def make_data(shape, device, examples=100):
    """Images and labels of whichever device; labels in the field's type."""
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, examples)
    images = rng.normal(0, 1, (examples, *shape)) + labels.reshape(-1, *[1] * len(shape)) / 3
    return torch.tensor(images, device=device).float(), torch.tensor(labels, device=device).byte()


def train_in_torch(network, images, labels, steps=10):
    optimizer = torch.optim.SGD(network.train().parameters(), 0.05, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(images), labels.long()).backward()
        optimizer.step()


def probabilities(network, images):
    """In float64, from the network's weights: 1e-6 is what mtc may differ by, PyTorch's own rounding left out."""
    with torch.no_grad():
        return torch.softmax(copy.deepcopy(network).double().eval()(images.double()), 1)


def largest(difference):
    return difference.abs().max().item()


def inverse(names):
    return names and {new: old for old, new in names.items()}


@pytest.fixture
def compiled():
    """compiled(text, target): a model that is closed at the end."""
    made = []

    def compile_model(text, target="cpu", **options):
        made.append(mtc.compile(text, target=target, seed=1, **options))
        return made[-1]

    yield compile_model
    for model in made:
        model.close()


# ---- Round trip ----


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_round_trip(compiled, kind, target):
    """PyTorch's weights, and statistics, in mtc: the same predictions. Trained there, and back: the same again."""
    text, make, shape, names = NETWORKS[kind]
    images, labels = make_data(shape, target)
    network, model = make().to(target), compiled(text, target)
    train_in_torch(network, images, labels)
    assert model.load_state_dict(network.state_dict(), rename=names) == ([], [])
    assert largest(model.predict_proba(images) - probabilities(network, images)) < 1e-6

    before = model.state_dict()
    model.fit(images, labels, epochs=3, verbose=0)
    after = model.state_dict()
    assert all((before[name] != after[name]).any() for name in before)

    back = {name: torch.from_numpy(values) for name, values in model.state_dict(rename=inverse(names)).items()}
    result = network.load_state_dict(back, strict=False)
    assert not result.unexpected_keys and all(name.endswith("num_batches_tracked") for name in result.missing_keys)
    assert largest(model.predict_proba(images) - probabilities(network, images)) < 1e-6
    assert (model.predict(images) == probabilities(network, images).argmax(1)).all()


@pytest.mark.parametrize("target", TARGETS)
def test_training_is_the_same(compiled, target):
    """One step of all examples: weights, and running statistics, agree with PyTorch's."""
    text, make, shape, _ = NETWORKS["cnn"]
    images, labels = make_data(shape, target, 16)
    network, model = make().to(target), compiled(text, target)
    model.load_state_dict(network.state_dict())
    train_in_torch(network, images, labels, steps=1)
    model.fit(images, labels, epochs=1, verbose=0)
    for name, values in network.state_dict().items():
        if not name.endswith("num_batches_tracked"):
            assert largest(torch.from_numpy(model.params[name].numpy()) - values.cpu()) < 1e-6, name


@pytest.mark.parametrize("target", TARGETS)
def test_a_network_that_shares_the_weights(compiled, target):
    """PyTorch's module computes with the memory of the model: training in mtc needs no copy back."""
    text, make, shape, _ = NETWORKS["cnn"]
    images, labels = make_data(shape, target)
    network, model = make().to(target).eval(), compiled(text, target)
    for name, tensor in [*network.named_parameters(), *network.named_buffers()]:
        if name in model.params:
            tensor.data = torch.from_dlpack(model.params[name])
    for _ in range(2):
        with torch.no_grad():
            assert largest(model.predict_proba(images) - torch.softmax(network(images), 1)) < 2e-6
        model.fit(images, labels, epochs=1, verbose=0)


# ---- Without a copy, by pointers ----


@pytest.mark.parametrize("target", TARGETS)
def test_parameters_by_pointers(compiled, target):
    model = compiled(CNN, target)
    arena = model.status["arena"]
    for tensor in model.description["tensors"]:
        if tensor["role"] in ("weight", "buffer", "state"):
            parameter = model.params[tensor["name"]]
            shared = torch.from_dlpack(parameter)
            print(f"{parameter.name}: mtc 0x{parameter.data_ptr():x}, torch 0x{shared.data_ptr():x}, "
                  f"on {shared.device}, shape {tuple(shared.shape)}, strides {shared.stride()}")
            assert shared.data_ptr() == parameter.data_ptr() == arena + tensor["offset"]
            assert tuple(shared.shape) == parameter.shape and shared.stride() == parameter.strides
            assert shared.device.type == target
            assert np.array_equal(shared.cpu().numpy(), parameter.numpy())


@pytest.mark.parametrize("target", TARGETS)
def test_torch_writes_to_parameters(compiled, target):
    model = compiled(CNN, target)
    weight = model.params["conv1.weight"]
    shared = torch.from_dlpack(weight)
    expected = weight.numpy() * 2
    shared.mul_(2)
    assert np.array_equal(weight.numpy(), expected)
    model.params["conv1.weight"] = torch.ones(6, 3, 3, 3, device=target, dtype=torch.float64, requires_grad=True)
    assert (shared == 1).all()


@pytest.mark.parametrize("target", TARGETS)
def test_data_by_pointers(compiled, target):
    """The program is given the addresses of the tensors."""
    model = compiled(MLP, target)
    for field, tensor in zip(model.fields, make_data((24,), target)):
        column = arrays.to_column(model.session, field, tensor, "X")
        print(f"{field['name']}: torch 0x{tensor.data_ptr():x} on {tensor.device}, given to mtc 0x{column.pointer:x}")
        assert column.lent and column.pointer == tensor.data_ptr() and column.examples == 100


@pytest.mark.parametrize("target", TARGETS)
def test_data_are_read_where_they_lie(compiled, target):
    """What changes in the tensors' memory between epochs changes what is trained; and there is no word about a copy."""
    model, losses = compiled(MLP, target), []
    for change in (False, True):
        images, labels = make_data((24,), target)

        def on_epoch(model, epoch, logs, images=images, change=change):
            if change:
                images.zero_()

        model.reset(seed=3)
        with warnings.catch_warnings():
            warnings.simplefilter("error", mtc.ConversionNotice)
            losses.append(model.fit(images, labels, epochs=3, verbose=0, callbacks=on_epoch)["loss"])
            proba = model.predict_proba(images)
    assert losses[0][0] == losses[1][0] and losses[0][2] != losses[1][2]
    assert proba.device == images.device and proba.shape == (100, 5) and proba.dtype == torch.float32
    assert (proba == proba[0]).all()  # all images are zero


@pytest.mark.parametrize("target", TARGETS)
def test_results_are_of_the_same_library(compiled, target):
    images, labels = make_data((24,), target)
    model = compiled(MLP, target)
    proba, classes = model.predict_proba(images), model.predict(images)
    assert isinstance(proba, torch.Tensor) and isinstance(classes, torch.Tensor)
    assert proba.device == classes.device == images.device
    assert (proba.argmax(1) == classes).all() and largest(proba.sum(1) - 1) < 1e-5
    expected = model.predict_proba(images.cpu().numpy())
    assert isinstance(expected, np.ndarray) and np.array_equal(proba.cpu().numpy(), expected)
    accuracy = (classes == labels).float().mean().item()
    assert model.score(images, labels) == pytest.approx(accuracy) == model.evaluate(images, labels)["accuracy"]


@pytest.mark.parametrize("target", TARGETS)
def test_results_outlive_the_model(compiled, target):
    images, _ = make_data((24,), target)
    model = compiled(MLP, target)
    results = [model.predict_proba(images) for _ in range(50)]
    pointers = {result.data_ptr() for result in results}
    expected = results[0].clone()
    model.close()
    assert len(pointers) == 50 and all(torch.equal(result, expected) for result in results)


@pytest.mark.parametrize("target", TARGETS)
def test_flat_tensors(compiled, target):
    """[N, 192] for a field [3, 8, 8], without a copy too."""
    images, labels = make_data((3, 8, 8), target)
    model = compiled(CNN, target)
    flat = images.reshape(100, -1)
    assert torch.equal(model.predict_proba(flat), model.predict_proba(images))
    with pytest.raises(mtc.DataError, match=r"'image'.*\[N, 3, 8, 8\]"):
        model.predict_proba(flat[:, :10].contiguous())


@pytest.mark.parametrize("target", TARGETS)
def test_probabilities_of_one_output(compiled, target):
    """Of `bce`: that of no, and of yes."""
    text = MLP.partition("train {\n")[0] + """train {
  loss      = bce(sigmoid(answer), yes)
  optimizer = sgd(lr)
  batch     = 16
}
"""
    text = text.replace("label : class[5]", "yes : f32[1]").replace("fc2 = linear(fc1, 5)", "answer = linear(fc1, 1)")
    images, _ = make_data((24,), target)
    model = compiled(text, target)
    both = model.predict_proba(images)
    assert isinstance(both, torch.Tensor) and both.shape == (100, 2) and both.device == images.device
    assert np.array_equal(both.cpu().numpy(), model.predict_proba(images.cpu().numpy()))
    assert torch.equal(both[:, 1:], model.predict(images))


# ---- With a copy ----


def converted(images, labels):
    """The same examples as tensors that cannot be read where they lie, and what the notice says on a GPU."""
    shifted = torch.zeros(images.numel() + 1, device=images.device)[1:].reshape(images.shape)
    shifted.copy_(images)
    yield "f64", images.double(), labels, "it is f64, the field 'image' f32; 19 KB were copied"
    yield "i64", images, labels.long(), None  # of classes, which everybody has so
    yield "strides", images.T.contiguous().T, labels, r"its strides \[1, 100\] are not those"
    yield "address", shifted, labels, "is not a multiple of 16"
    yield "grad", images.clone().requires_grad_(), labels, None


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["f64", "i64", "strides", "address", "grad"])
def test_other_layouts_and_types(compiled, kind, target):
    images, labels = make_data((24,), target)
    model = compiled(MLP, target)
    expected, proba = model.evaluate(images, labels), model.predict_proba(images)
    other_images, other_labels, notice = next(rest for name, *rest in converted(images, labels) if name == kind)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", mtc.ConversionNotice)
        assert model.evaluate(other_images, other_labels) == expected
    texts = [str(word.message) for word in said if word.category is mtc.ConversionNotice]
    if target == "cuda":
        assert [bool(re.search(notice, text)) for text in texts] == [True] if notice else not texts
    result = model.predict_proba(other_images)
    assert torch.equal(result, proba) and result.device == images.device and not result.requires_grad


@pytest.mark.parametrize("target", TARGETS)
def test_labels_out_of_range(compiled, target):
    images, labels = make_data((24,), target)
    labels[7] = 5
    for given in (labels, labels.long()):
        with pytest.raises(mtc.DataError, match="label"):
            compiled(MLP, target).fit(images, given, epochs=1, verbose=0)


@pytest.mark.gpu
def test_tensors_on_the_other_side(compiled):
    """Of the CPU for a model on the GPU, and the reverse: copied, and the result is where the model is not."""
    images, labels = make_data((24,), "cuda")
    on_gpu, on_cpu = compiled(MLP, "cuda"), compiled(MLP, "cpu")
    on_cpu.load_state_dict(on_gpu.state_dict())
    with pytest.warns(mtc.ConversionNotice, match="it is on cuda:0, the model on the host; 9.6 KB were copied"):
        far = on_cpu.predict_proba(images)
    assert isinstance(far, torch.Tensor) and largest(far.cpu() - on_gpu.predict_proba(images).cpu()) < 1e-5
    assert on_gpu.predict_proba(images.cpu()).device.type == "cpu"
    assert on_gpu.evaluate(images.cpu(), labels.cpu()) == on_gpu.evaluate(images, labels)


@pytest.mark.gpu
def test_work_that_is_not_done_yet(compiled):
    """What PyTorch has only enqueued, on a stream of its own too, is done before mtc reads it; and the reverse."""
    model = compiled(MLP, "cuda")
    reference = torch.randn(1 << 14, 24, device="cuda")
    expected = model.predict_proba(reference.clone())
    for stream in (torch.cuda.default_stream(), torch.cuda.Stream()):
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            images = torch.zeros_like(reference)
            torch.cuda._sleep(200_000_000)  # cycles: some tenth of a second
            images.copy_(reference)
            result = model.predict_proba(images)
            assert torch.equal(result * 1, expected)


@pytest.mark.gpu
def test_memory_is_given_back(compiled):
    """Results in the GPU's memory are freed with their tensors."""
    model = compiled(MLP, "cuda")
    images, _ = make_data((24,), "cuda", 1 << 17)
    model.predict_proba(images)
    lost = []
    for _ in range(5):  # others may use the GPU meanwhile: what is lost is lost each time
        torch.cuda.synchronize()
        free = torch.cuda.mem_get_info()[0]
        for _ in range(40):
            model.predict_proba(images)
        lost.append(free - torch.cuda.mem_get_info()[0])
    assert min(lost) < 64 << 20


# ---- DLPack with PyTorch, without a model ----


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
                                   "float64"])
def test_types(dtype, target):
    tensor = torch.tensor([[0, 1, 1], [1, 0, 0]], dtype=getattr(torch, dtype), device=target).T
    array = dlpack.from_dlpack(tensor)
    again = torch.from_dlpack(array)
    assert array.pointer == tensor.data_ptr() == again.data_ptr() and again.stride() == tensor.stride()
    assert again.dtype == tensor.dtype and torch.equal(again, tensor) and str(array.device) == str(tensor.device)


@pytest.mark.parametrize("target", TARGETS)
def test_the_memory_outlives_the_tensor(target):
    given = len(dlpack._given)
    tensor = torch.arange(5.0, device=target)
    again = torch.from_dlpack(dlpack.from_dlpack(tensor))
    del tensor
    torch.empty(5, device=target).fill_(-1)
    assert again.tolist() == [0, 1, 2, 3, 4]
    del again
    assert len(dlpack._given) == given


def test_alive_when_python_ends():
    text = """
import torch, mtc
from mtc import dlpack
kept = torch.from_dlpack(dlpack.from_dlpack(torch.arange(5.0)))
torch.kept = torch.from_dlpack(dlpack.from_dlpack(torch.arange(5.0)))
capsule = dlpack.from_dlpack(torch.arange(5.0)).__dlpack__()
"""
    done = subprocess.run([sys.executable, "-c", text], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done


# ---- The example ----


@pytest.mark.parametrize("target", TARGETS)
def test_example(target, tmp_path):
    done = subprocess.run([sys.executable, ROOT / "examples/transfer.py", "--target", target, "--epochs", "3"],
                          cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    differences = re.findall(r"largest difference of a probability (\S+), the same class for 100.0%", done.stdout)
    assert len(differences) == 2 and all(float(difference) < 1e-6 for difference in differences)
    assert float(re.search(r"accuracy (\S+) of unseen", done.stdout)[1]) > 0.8
    pointers = re.findall(r"in mtc at (\S+), in PyTorch at (\S+), on (\S+),", done.stdout)
    assert len(pointers) == 2 and all(ours == theirs and place.startswith(target) for ours, theirs, place in pointers)
