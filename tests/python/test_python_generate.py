"""Text of language models from Python: that of the program's `generate`."""

import os
import signal
import threading
import time

import numpy as np
import pytest

import mtc
from conftest import MTC
from mtc.abi import Generation, Sampling
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
    ("ij", 30, {"seed": 2, "min_p": 0.1, "repetition_penalty": 1.5}),
    ("fg", 20, {"beams": 3}),
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
    ({"seed": -1}, mtc.UsageError, "seed is a whole number from 0 on, not -1"),
    ({"min_p": 2}, mtc.UsageError, "min_p is from 0 to 1, not 2"),
    ({"repetition_penalty": 0}, mtc.UsageError, "repetition_penalty is above 0 and finite, not 0"),
    ({"beams": 2, "top_k": 3}, mtc.UsageError, "beams draws nothing: it goes without temperature, top-k, top-p and min-p"),
    ({"beams": 2, "batch": 3}, mtc.UsageError, "batch: the 3 best of 2 beams are asked for"),
    ({"stop": ["a", ""]}, mtc.UsageError, "a stop is a text that is not empty"),
    ({"stop": 3}, mtc.UsageError, "stop is a text, such as 'ROMEO:' or '17 4', not 3"),
    ({"stream": True, "batch": 2}, mtc.UsageError, "stream gives one text as it is made: a prompt, and no batch")])
def test_faults(arguments, kind, text, model):
    with pytest.raises(kind) as caught:
        model.generate(**arguments)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize("temperature, top_k, batch, text", [
    (float("inf"), 0, 1, "temperature is finite, not inf"),
    (1, -1, 1, "top_k is at least 0, not -1"),
    (1, 0, 0, "beams and batch are at least 1, not 1 and 0")])
def test_what_only_other_callers_of_the_library_can_give(temperature, top_k, batch, text, model):
    with pytest.raises(mtc.UsageError) as caught:
        model.session.generator(Generation.of(Sampling(1, temperature, top_k, 1, 0, 0), b"ab", 1, batch, 1, []))
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


@pytest.mark.parametrize("name, hint", [("topk", "; did you mean 'top_k'?"), ("num_beams", "; did you mean 'beams'?"),
                                        ("max_new_tokens", "; did you mean 'tokens'?"), ("echo", "")])
def test_unknown_arguments(name, hint, model):
    with pytest.raises(TypeError) as caught:
        model.generate("ab", **{name: 3})
    assert str(caught.value) == f"generate() got an unexpected keyword argument '{name}'{hint}"


def test_a_stream_is_the_text_in_parts(model):
    how = {"seed": 2, "stop": ["klm", " p"]}
    text = model.generate("abc d", 60, **how)
    parts = list(model.generate("abc d", 60, stream=True, **how))
    assert "".join(parts) == text and parts[:5] == list("abc d") and not any(stop in text[5:] for stop in how["stop"])
    assert len(text) < 65 and len(parts) > len(text) / 3


def test_between_the_parts_of_a_stream_the_model_is_free(model):
    """It may even generate other texts, evaluate or get other weights: the cache is filled again."""
    expected = model.generate("abc d", 30, temperature=0)
    texts = [model.generate("abc d", 30, temperature=0, stream=True) for _ in range(2)]
    assert ["".join(parts) for parts in zip(*(zip(*texts)))] == [expected, expected]
    parts, before = model.generate("abc d", 5, temperature=0, stream=True), np.array(model.params["logits.bias"])
    found = [next(parts) for _ in range(6)]
    model.params["logits.bias"] = before + 100 * (np.arange(len(before)) == 3)
    assert "".join(found + list(parts)) == expected[:6] + model.generate("a", 1, temperature=0)[1] * 4
    model.params["logits.bias"] = before


def test_a_stream_is_left_where_it_is(trained):  # noqa: F811
    made = mtc.compile(model_of(MODELS["two_layers"], TEXT), target="cpu").load(trained[1])
    parts = made.generate("ab", 10, stream=True)
    assert next(parts) == "a"
    made.close()
    with pytest.raises(mtc.UsageError, match="the model is closed"):
        next(parts)
    parts.close()


def test_several_texts(model):
    texts = model.generate("fg", 20, batch=3, seed=4)
    assert len(set(texts)) == 3 and texts[0] == model.generate("fg", 20, seed=4)
    assert model.generate(["fg", "ij"], 20, seed=4) == [texts[0], model.generate("ij", 20, seed=4)]
    assert model.generate(["fg"], 20, seed=4, batch=3) == [texts]
    assert model.generate("fg", 20, beams=4, batch=2)[0] == model.generate("fg", 20, beams=4)


def test_ctrl_c_ends_it(model, hears_ctrl_c):
    """After the token that is drawn; the model stays usable."""
    began = time.monotonic()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        model.generate("ab", 10**7)
    assert time.monotonic() - began < 10
    assert len(model.generate("ab", 5)) == 7
