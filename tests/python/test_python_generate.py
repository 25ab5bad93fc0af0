"""Text of language models from Python: that of the program's `generate`."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import mtc
from conftest import MTC
from mtc.library import Sampling
from test_generate import MODELS, TEXT, generate, input_text, model_of, trained  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.skipif(not MTC.exists(), reason="run 'make' first"), pytest.mark.quick]


def sources(tmp_path, level):
    """A model, and the data that it learns."""
    (tmp_path / "input.txt").write_text("größe ☃ 𝄞 " * 60)
    np.array([3, 1, 4, 1, 5] * 60, np.uint16).tofile(tmp_path / "tokens.bin")
    data = 'tokens("tokens.bin")' if level == "number" else f'text("input.txt", level = "{level}")'
    text = model_of(MODELS["attention"].replace("19", "256"), data).replace("class[19]", "class[256]")
    return text.replace("1e-3", "1e-2")


@pytest.fixture(scope="module")
def model(trained):  # noqa: F811
    with mtc.compile(model_of(MODELS["two_layers"], TEXT), target="cpu") as made:
        yield made.load(trained[1])


@pytest.mark.parametrize("prompt, tokens, how", [
    ("abc d", 40, {"temperature": 0}),
    ("fg", 60, {"seed": 2}),
    ("ij", 30, {"seed": 2, "temperature": 0.7, "top_k": 5, "top_p": 0.9}),
    ("", 20, {"seed": 4})])
def test_the_same_as_the_program(prompt, tokens, how, model, trained):  # noqa: F811
    flags = [part for name, value in how.items() for part in (f"--{name.replace('_', '-')}", value)]
    shown = generate(trained, "--prompt", prompt, "--tokens", tokens, *map(str, flags))
    text = model.generate(prompt, tokens, **how)
    assert text.removesuffix("\n") == shown.removesuffix("\n") and len(text) == len(prompt) + tokens


def test_the_seed_is_the_models_unless_given(model):
    assert model.generate("ab", 30) == model.generate("ab", 30, seed=model.status["seed"]) != model.generate("ab", 30, seed=77)


def test_characters_come_whole(tmp_path):
    with mtc.compile(sources(tmp_path, "byte"), target="cpu") as of_bytes:
        of_bytes.fit(data=tmp_path, epochs=30, verbose=0)
        text = of_bytes.generate("größe", 40, temperature=0)
        assert text.startswith("größe ☃ 𝄞 größe ☃")
        assert of_bytes.generate("größe", 2, temperature=0) == "größe "  # the snowman has begun
        assert of_bytes.generate("gr\udcc3\udcb6ße", 1, temperature=0) == "größe "  # as os.fsdecode has such bytes


def test_tokens_that_are_numbers(tmp_path):
    with mtc.compile(sources(tmp_path, "number"), target="cpu") as of_numbers:
        of_numbers.fit(data=tmp_path, epochs=1, verbose=0)
        numbers = [int(word) for word in of_numbers.generate("3 1 4", 5).split()]
        assert numbers[:3] == [3, 1, 4] and len(numbers) == 8
        with pytest.raises(mtc.UsageError, match="^this model needs a beginning: a prompt, of numbers with spaces between$"):
            of_numbers.generate()


def test_training_is_the_same_with_it(tmp_path):
    text, losses, texts = sources(tmp_path, "char"), [], []
    for watching in ((), lambda model, epoch, logs: texts.append(model.generate("größe", 5))):
        with mtc.compile(text, target="cpu") as made:
            losses.append(made.fit(data=tmp_path, epochs=3, verbose=0, callbacks=watching)["loss"])
    assert losses[0] == losses[1] and len(texts) == 3 and all(each.startswith("größe") for each in texts)


@pytest.mark.parametrize("arguments, kind, text", [
    ({"prompt": "abcZ"}, mtc.DataError, "prompt:1:4: 'Z' is none of the "),
    ({"prompt": "abc abc abc abc"}, mtc.UsageError, "the prompt has 15 tokens, the model sees 12 at most"),
    ({"prompt": 17}, mtc.UsageError, "prompt is a text, such as 'ROMEO:' or '17 4', not 17"),
    ({"prompt": "a\0b"}, mtc.UsageError, "prompt has a character of code 0, which no prompt can have"),
    ({"tokens": 0}, mtc.UsageError, "tokens is a whole number from 1 on, not 0"),
    ({"temperature": -0.5}, mtc.UsageError, "temperature is at least 0, not -0.5"),
    ({"temperature": "warm"}, mtc.UsageError, "temperature is a number, not 'warm'"),
    ({"top_p": 0}, mtc.UsageError, "top_p is above 0 and at most 1, not 0"),
    ({"top_p": 1.5}, mtc.UsageError, "top_p is above 0 and at most 1, not 1.5"),
    ({"top_k": -1}, mtc.UsageError, "top_k is a whole number from 0 on, not -1"),
    ({"seed": -1}, mtc.UsageError, "seed is a whole number from 0 on, not -1")])
def test_faults(arguments, kind, text, model):
    with pytest.raises(kind) as caught:
        model.generate(**arguments)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("temperature, top_k, text", [
    (float("inf"), 0, "temperature is finite, not inf"),
    (1, -1, "top_k is at least 0, not -1")])
def test_what_only_other_callers_of_the_library_can_give(temperature, top_k, text, model):
    with pytest.raises(mtc.UsageError) as caught:
        model.session.generate(Sampling(temperature, top_k, 1, 0), b"ab", 1, lambda *_: False)
    assert str(caught.value) == text


def test_models_that_generate_no_text():
    with mtc.Sequential([mtc.Linear(3, 2)], target="cpu") as other:
        with pytest.raises(mtc.UsageError, match="generates no text: its data are not windows of tokens$"):
            other.generate("a")


def test_characters_that_nobody_has_told(tmp_path):
    """Of a model that has neither trained nor loaded."""
    with mtc.compile(sources(tmp_path, "char"), target="cpu") as untrained:
        with pytest.raises(mtc.DataError, match="which characters the classes of '.*' are is not known: call fit or load first, ") as caught:
            untrained.generate("a")
        assert "saved" not in str(caught.value)
        untrained.fit(data=tmp_path, epochs=1, verbose=0)
        assert untrained.generate("g", 2).startswith("g")


@pytest.mark.parametrize("name, hint", [("topk", "; did you mean 'top_k'?"), ("beams", "")])
def test_unknown_arguments(name, hint, model):
    with pytest.raises(TypeError) as caught:
        model.generate("ab", **{name: 3})
    assert str(caught.value) == f"generate() got an unexpected keyword argument '{name}'{hint}"


def test_ctrl_c_ends_it(model, hears_ctrl_c):
    """After the token that is drawn; the model stays usable."""
    began = time.monotonic()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.generate("ab", 10**7)
    assert time.monotonic() - began < 10
    assert len(model.generate("ab", 5)) == 7
