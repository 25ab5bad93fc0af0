"""Recurrent layers against PyTorch's from the same weights, by the same names: the losses of fifty steps of Adam, then all weights, on the
CPU in float64 and on a GPU; and the last states of sequences that are packed."""

import re

import numpy as np
import pytest
from library import Library

torch = pytest.importorskip("torch")

EXAMPLES, STEPS_OF_TIME, FEATURES, UNITS, TRAINED = 16, 9, 5, 12, 50
# The call, and PyTorch's module.
LAYERS = {
    "rnn": ("rnn(x, {u})", lambda: torch.nn.RNN(FEATURES, UNITS, batch_first=True)),
    "relu": ('rnn(x, {u}, activation = "relu", bias = false)',
             lambda: torch.nn.RNN(FEATURES, UNITS, nonlinearity="relu", bias=False, batch_first=True)),
    "gru": ("gru(x, {u}, layers = 2)", lambda: torch.nn.GRU(FEATURES, UNITS, num_layers=2, batch_first=True)),
    "gru_both": ("gru(x, {u}, bidirectional = true)", lambda: torch.nn.GRU(FEATURES, UNITS, bidirectional=True, batch_first=True)),
    "lstm": ("lstm(x, {u})", lambda: torch.nn.LSTM(FEATURES, UNITS, batch_first=True)),
    "lstm_both": ("lstm(x, {u}, layers = 2, bidirectional = true)",
                  lambda: torch.nn.LSTM(FEATURES, UNITS, num_layers=2, bidirectional=True, batch_first=True)),
}
MODEL = """data {{
  train = idx("x", "y")
  x : f32[{steps}, {features}]
  y : f32[{steps}, {width}]
}}
model {{
  h = {call}
}}
train {{
  loss      = mse(h, y)
  optimizer = adam(1e-2)
  batch     = {examples}
}}
"""
LOSSES = {"cpu": dict(rtol=1e-9), "cuda": dict(rtol=1e-3)}
WEIGHTS = {"cpu": dict(rtol=1e-6, atol=1e-9), "cuda": dict(rtol=1e-2, atol=1e-3)}


def numbers(*shape, seed):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def losses_of(net, x, y):
    optimizer, found = torch.optim.Adam(net.parameters(), 1e-2), []
    for _ in range(TRAINED):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(torch.tensor(x).double())[0], torch.tensor(y).double())
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("name", LAYERS)
def test_fifty_steps(name, target, compile_model):
    torch.manual_seed(0)
    call, make = LAYERS[name]
    net, real = make().double(), np.float64 if target == "cpu" else np.float32
    width = UNITS * (2 if net.bidirectional else 1)
    text = MODEL.format(steps=STEPS_OF_TIME, features=FEATURES, width=width, call=call.format(u=UNITS), examples=EXAMPLES)
    library = Library(compile_model(text, "--shared", *(["--real", "f64"] if target == "cpu" else []), target=target).path, real)
    x, y = numbers(EXAMPLES, STEPS_OF_TIME, FEATURES, seed=1), numbers(EXAMPLES, STEPS_OF_TIME, width, seed=2)
    library.set_data([x, y])
    for weight, value in net.named_parameters():
        library.set(f"h.{weight}", value.detach().numpy())
    losses = library.train(TRAINED, 1)[:, 0]
    np.testing.assert_allclose(losses, losses_of(net, x, y), **LOSSES[target])
    for weight, value in net.named_parameters():
        np.testing.assert_allclose(library.get(f"h.{weight}", value.shape), value.detach().numpy(), **WEIGHTS[target], err_msg=weight)
    library.close()


def test_the_last_states_of_packed_sequences(compile_model):
    torch.manual_seed(0)
    net = torch.nn.LSTM(FEATURES, UNITS, bidirectional=True, batch_first=True).double()
    text = MODEL.format(steps=STEPS_OF_TIME, features=FEATURES, width=1, call="lstm(x, 12, bidirectional = true, lengths = n)", examples=EXAMPLES)
    text = text.replace('"y")', '"y", "n")').replace("}\nmodel", "  n : u8\n}\nmodel")
    text = re.sub("loss .*", "loss = mse(mean(h), y[0, 0])\n  predict = concat([h[-1, :12], h[0, 12:]])", text)
    library = Library(compile_model(text, "--shared", "--real", "f64").path, np.float64)
    x, lengths = numbers(EXAMPLES, STEPS_OF_TIME, FEATURES, seed=1), np.arange(EXAMPLES) % STEPS_OF_TIME + 1
    for weight, value in net.named_parameters():
        library.set(f"h.{weight}", value.detach().numpy())
    found = library.predict([x, numbers(EXAMPLES, STEPS_OF_TIME, 1, seed=2), lengths.astype(np.uint8)], 2 * UNITS)
    packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x).double(), lengths, batch_first=True, enforce_sorted=False)
    wanted = net(packed)[1][0].transpose(0, 1).reshape(EXAMPLES, -1).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    library.close()
