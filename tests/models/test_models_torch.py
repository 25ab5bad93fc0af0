"""The project's smaller models against PyTorch from the same weights and examples: the losses of twenty steps of each model's own train
block, then all weights; on the CPU in float64, and on a GPU.

A model is its file but for the data, which lie here, for random numbers, which become data, and for rates, which stay as they begin."""

import re
from dataclasses import dataclass
from typing import Callable

import numpy as np
import pytest
from conftest import ROOT
from library import Library

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

EXAMPLES, STEPS = 8, 20
VARIANTS = [("cpu", np.float64), ("cpu", np.float32), pytest.param("cuda", np.float32, marks=pytest.mark.gpu)]
EXACT, ROUNDED = 1e-9, 1e-4  # how far losses and weights may be from PyTorch's float64, relative in the Euclidean norm


# ---- the models in PyTorch: names of weights are those of mtc ----

class GruNames(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.read, self.fc = nn.Embedding(27, 16), nn.GRU(16, 64, batch_first=True), nn.Linear(64, 5)

    def forward(self, letter, length, language):
        packed = nn.utils.rnn.pack_padded_sequence(self.embed(letter), length, batch_first=True, enforce_sorted=False)
        return F.cross_entropy(self.fc(self.read(packed)[1][0]), language)


class LstmForecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.states, self.fc = nn.LSTM(1, 48, num_layers=2, batch_first=True), nn.Linear(48, 12)

    def forward(self, past, following):
        level = past[:, -1]
        return F.mse_loss(self.fc(self.states(past - level[:, None])[0][:, -1]) + level, following)


def convolution(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


class Twice(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.a, self.b = convolution(inputs, outputs), convolution(outputs, outputs)

    def forward(self, x):
        return self.b(self.a(x))


class Up(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.grown, self.both = nn.ConvTranspose2d(inputs, outputs, 2, 2), Twice(2 * outputs, outputs)

    def forward(self, x, skip):
        return self.both(torch.cat([skip, self.grown(x)], 1))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2, self.down3 = Twice(1, 8), Twice(8, 16), Twice(16, 32)
        self.up2, self.up1, self.head = Up(32, 16), Up(16, 8), nn.Conv2d(8, 4, 1)

    def forward(self, image, mask):
        down1 = self.down1(image / 255)
        down2 = self.down2(F.max_pool2d(down1, 2))
        up2 = self.up2(self.down3(F.max_pool2d(down2, 2)), down2)
        return F.cross_entropy(self.head(self.up1(up2, down1)), mask)


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 5, padding=2), nn.Conv2d(8, 16, 5, padding=2)
        self.fc = nn.Linear(784, 16)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x / 255)), 2)
        return self.fc(F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1))


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = Tower()

    def forward(self, left, right, same):
        distance = ((self.tower(left) - self.tower(right)).square().sum(1) + 1e-6).sqrt()
        return (same * distance.square() + (1 - same) * F.relu(1 - distance).square()).mean()


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.mean_of, self.spread = nn.Linear(784, 256), nn.Linear(256, 8), nn.Linear(256, 8)
        self.decode, self.scores = nn.Linear(8, 256), nn.Linear(256, 784)

    def forward(self, image, noise):
        x = image.flatten(1) / 255
        encoded = F.relu(self.encode(x))
        mean, spread = self.mean_of(encoded), self.spread(encoded)
        scores = self.scores(F.relu(self.decode(mean + (spread / 2).exp() * noise)))
        restored = F.binary_cross_entropy_with_logits(scores, x, reduction="none").sum(1)
        return (restored + (mean.square() + spread.exp() - spread - 1).sum(1) / 2).mean()


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = nn.Sequential(nn.Linear(32, 1568), nn.LayerNorm(1568), nn.ReLU())
        self.h2 = nn.ConvTranspose2d(32, 16, 4, 2, 1)
        last = nn.ConvTranspose2d(16, 1, 4, 2, 1)
        self.weight, self.bias = last.weight, last.bias

    def forward(self, noise):
        h2 = F.relu(self.h2(self.h(noise).reshape(-1, 32, 7, 7)))
        return F.conv_transpose2d(h2, self.weight, self.bias, 2, 1).sigmoid()


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.h2 = nn.Conv2d(1, 8, 4, 2, 1), nn.Conv2d(8, 16, 4, 2, 1)
        last = nn.Linear(784, 1)
        self.weight, self.bias = last.weight, last.bias

    def forward(self, x):
        h = F.leaky_relu(self.h(2 * x - 1), 0.2)
        return F.linear(F.leaky_relu(self.h2(h), 0.2).flatten(1), self.weight, self.bias)


def score(scores, target):
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, target))


class Dcgan(nn.Module):
    """Two that take turns: the discriminator in the odd updates, the generator in the even."""

    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = Generator(), Discriminator()

    def forward(self, image, noise):
        return score(self.discriminator(self.generator(noise)), 1)

    def telling(self, image, noise):
        real = self.discriminator(image[:, None] / 255)
        return (score(real, 1) + score(self.discriminator(self.generator(noise)), 0)) / 2


class Pinn(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.h2, self.network = nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1)

    def forward(self, at, temperature):
        at = at.requires_grad_()
        t, x = at.T
        u = torch.sin(3.14159265 * x) + t * x * (1 - x) * self.network(self.h2(self.h(at).tanh()).tanh())[:, 0]
        slope, = torch.autograd.grad(u.sum(), at, create_graph=True)
        bend, = torch.autograd.grad(slope[:, 1].sum(), at, create_graph=True)
        return (slope[:, 0] - 0.1 * bend[:, 1]).square().mean()


class Word2vec(nn.Module):
    def __init__(self):
        super().__init__()
        self.vectors, self.contexts = (nn.Parameter(0.5 * torch.randn(64, 16)) for _ in range(2))

    def forward(self, word, near):
        vector, context = self.vectors[word], self.contexts[near]
        return (F.softplus(-(vector * context).sum(1)) + 5 * F.softplus(vector @ context.T).mean(1)).mean()


class Half(nn.Module):
    def __init__(self):
        super().__init__()
        self.h, self.h2, self.v = nn.Linear(392, 256), nn.Linear(256, 128), nn.Linear(128, 32)

    def forward(self, x):
        v = self.v(F.relu(self.h2(F.relu(self.h(x.flatten(1) / 255)))))
        return v / (v.norm(dim=1, keepdim=True) + 1e-6)


class Contrastive(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = Half(), Half()

    def forward(self, image):
        left, right = self.left(image[:, :, :14]), self.right(image[:, :, 14:])
        own = torch.arange(len(image), device=image.device)
        return (F.cross_entropy(10 * left @ right.T, own) + F.cross_entropy(10 * right @ left.T, own)) / 2


# ---- their examples ----

@dataclass(frozen=True)
class Field:
    """A declaration of the language, and the values of all examples."""

    declaration: str
    draw: Callable


def classes(name, count, *shape):
    sizes = f"[{', '.join(map(str, shape))}]" if shape else ""
    return Field(f"{name} : class[{count}]{sizes}", lambda random: random.integers(0, count, (EXAMPLES, *shape), np.uint8))


def pixels(name, *shape):
    return Field(f"{name} : u8[{', '.join(map(str, shape))}]", lambda random: random.integers(0, 256, (EXAMPLES, *shape), np.uint8))


def numbers(name, *shape, draw="normal"):
    sizes = f"[{', '.join(map(str, shape))}]" if shape else ""
    return Field(f"{name} : f32{sizes}", lambda random: getattr(random, draw)(size=(EXAMPLES, *shape)).astype(np.float32))


LENGTHS = Field("length : u8", lambda random: random.integers(1, 17, EXAMPLES, np.uint8))
SAME = Field("same : f32", lambda random: (np.arange(EXAMPLES) % 2).astype(np.float32))


@dataclass(frozen=True)
class Case:
    """The peer, its fields, its rate, and what is put in the place of random numbers in the model's text."""

    peer: type
    fields: tuple
    rate: float
    instead: tuple = ()
    betas: tuple = (0.9, 0.999)
    clip: float = 0


CASES = {
    "gru_names": Case(GruNames, (classes("letter", 27, 16), LENGTHS, classes("language", 5)), 5e-3),
    "lstm_forecast": Case(LstmForecast, (numbers("past", 72, 1), numbers("next", 12)), 5e-3, clip=1),
    "unet": Case(Unet, (pixels("image", 1, 32, 32), classes("mask", 4, 32, 32)), 4e-3),
    "siamese": Case(Siamese, (pixels("left", 1, 28, 28), pixels("right", 1, 28, 28), SAME), 2e-3),
    "vae": Case(Vae, (pixels("image", 28, 28), numbers("noise", 8)), 2e-3, (("random_normal([code])", "noise"),)),
    "dcgan": Case(Dcgan, (pixels("image", 28, 28), numbers("noise", 32)), 1e-3,
                  (("param noise = 32", "param draws = 32"), ("random_normal([noise], in_evaluation = true)", "noise"),
                   ("dropout(flatten(h2), 0.3)", "flatten(h2)")), betas=(0.5, 0.999)),
    "pinn": Case(Pinn, (numbers("at", 2, draw="random"), numbers("temperature")), 2e-3),
    "word2vec": Case(Word2vec, (classes("word", 64), classes("near", 64)), 1e-2),
    "contrastive": Case(Contrastive, (pixels("image", 28, 28),), 1e-3),
}


def model_text(name):
    case, text = CASES[name], (ROOT / f"models/{name}.mt").read_text()
    fields = "\n  ".join(field.declaration for field in case.fields)
    text = re.sub(r"\ndata \{.*?\n\}\n", lambda _: f'\ndata {{\n  train = npz("x.npz")\n  {fields}\n}}\n', text, count=1, flags=re.S)
    for old, new in (*case.instead, ("cosine_lr(lr)", "lr")):
        assert old in text or old == "cosine_lr(lr)"
        text = text.replace(old, new)
    text = re.sub(r"\n  metric .*", "", text)
    return re.sub(r"\n  batch( +)= \d+", rf"\n  batch\1= {EXAMPLES}", text)


# ---- both ----

def tensors_of(case, examples):
    """Classes and lengths are indices; all else is numbers."""
    indices = [": class" in field.declaration or field is LENGTHS for field in case.fields]
    return [torch.tensor(values).long() if index else torch.tensor(values).double() for index, values in zip(indices, examples)]


def turns(net, case):
    """(what is trained, its loss) of the steps, one after the other."""
    def adam(part):
        return torch.optim.Adam(part.parameters(), case.rate, case.betas)
    if isinstance(net, Dcgan):
        return [(adam(net.discriminator), net.telling), (adam(net.generator), net)]
    return [(adam(net), net)]


def peer_losses(net, case, fields):
    """Of each step the model's loss before it."""
    losses, steps = [], turns(net, case)
    for step in range(STEPS):
        optimizer, loss_of = steps[step % len(steps)]
        net.zero_grad()
        loss = loss_of(*fields)
        losses.append((loss if loss_of is net else net(*fields)).item())
        grads = torch.autograd.grad(loss, list(optimizer.param_groups[0]["params"]))
        for weight, grad in zip(optimizer.param_groups[0]["params"], grads):
            weight.grad = grad
        if case.clip:
            nn.utils.clip_grad_norm_(net.parameters(), case.clip)
        optimizer.step()
    return losses


def weights_of(net):
    return {name: value.detach().numpy() for name, value in net.state_dict().items() if not name.endswith("num_batches_tracked")}


def peer_run(case, examples, real):
    """The losses, and of all tensors the first and the last values."""
    torch.manual_seed(0)
    net = case.peer().to(real).train()
    before = {name: value.copy() for name, value in weights_of(net).items()}
    losses = peer_losses(net, case, [each.to(real) if each.is_floating_point() else each for each in tensors_of(case, examples)])
    return np.array(losses), before, weights_of(net)


def distance(found, expected):
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


def distances(found, expected):
    return {name: distance(found[name], expected[name]) for name in expected}


@pytest.mark.parametrize("target, real", VARIANTS)
@pytest.mark.parametrize("name", CASES)
def test_twenty_steps(name, target, real, compile_model):
    """In float32 Adam makes much of gradients that are next to nothing: where PyTorch's own float32 is far from its float64, three
    times that is allowed."""
    case, random = CASES[name], np.random.default_rng(1)
    examples = [field.draw(random) for field in case.fields]
    losses, before, weights = peer_run(case, examples, torch.float64)
    assert abs(losses[0] - losses[-1]) > 1e-3  # it learns
    near = EXACT
    if real == np.float32:
        own_losses, _, own = peer_run(case, examples, torch.float32)
        near = max(ROUNDED, 3 * distance(own_losses, losses), 3 * max(distances(own, weights).values()))
    library = Library(compile_model(model_text(name), "--shared", *(["--real", "f64"] if real == np.float64 else []), target=target).path, real)
    library.set_data(examples)
    for weight, value in before.items():
        library.set(weight, value)
    assert distance(library.train(STEPS, 1)[:, 0], losses) < near
    too_far = {weight: d for weight, d in distances({weight: library.get(weight, value.shape) for weight, value in weights.items()}, weights).items()
               if not d < near}
    assert not too_far, f"more than {near}"
    library.close()
