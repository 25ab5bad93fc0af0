"""What ends and chooses generated texts: stops, penalties, beams, several texts; each against its rule, written in NumPy."""


import subprocess

import numpy as np
import pytest

from test_generate import (CHARACTERS, MODELS, T, TEXT, USAGE, generate, input_text, library, model_of, of_pieces, recited, reciting,  # noqa: F401
                           trained)

pytestmark = pytest.mark.quick

BAD_DATA, COUNT = 65, 30


@pytest.fixture(scope="module")
def judge(trained, mtc, tmp_path_factory):  # noqa: F811
    """log-probabilities of the next character, by evaluations of whole windows."""
    model = library(mtc, tmp_path_factory.mktemp("judge"), model_of(MODELS["two_layers"], TEXT))
    model.call("load", str(trained[1]).encode())
    known = {}

    def scores(tokens, penalty=1.0):
        begin = 0
        for n in range(len(tokens)):  # a full window goes on from its half
            begin = n - T // 2 if n + 1 - begin > T else begin
        window = tuple(tokens[begin:])
        if window not in known:
            p = model.predictions(window)[-1][:len(CHARACTERS)]
            known[window] = np.log(p / p.sum())
        out = known[window].copy()
        out[list(set(tokens))] *= penalty
        return out

    yield scores
    model.close()


def numbers(text):
    return [CHARACTERS.index(c) for c in text]


def text_of(tokens):
    return "".join(CHARACTERS[token] for token in tokens)


def cut(text, stops):
    """Up to the stop that is complete first; of those the longest."""
    for end in range(len(text) + 1):
        ends = [end - len(stop) for stop in stops if text[:end].endswith(stop)]
        if ends:
            return text[:min(ends)], True
    return text, False


def beam_search(judge, prompt, beams, stops=(), penalty=1.0, count=COUNT):
    live, complete = [(0.0, numbers(prompt))], []
    for _ in range(count):
        offers = [(-(score + more), b, token) for b, (score, tokens) in enumerate(live) for token, more in enumerate(judge(tokens, penalty))]
        best = [(-score, [*live[b][1], token]) for score, b, token in sorted(offers)[:beams - len(complete)]]
        ended = [cut(text_of(tokens[len(prompt):]), stops)[1] for _, tokens in best]
        complete += [each for each, ends in zip(best, ended) if ends]
        live = [each for each, ends in zip(best, ended) if not ends]
    found = sorted(complete + live, key=lambda each: -each[0] / (len(each[1]) - len(prompt)))
    return [prompt + cut(text_of(tokens[len(prompt):]), stops)[0] for _, tokens in found]


def shown(trained, *flags, count=COUNT):  # noqa: F811
    """The texts, each without its last line end: whether it had one of its own is not seen."""
    return [each.removesuffix("\n") for each in generate(trained, "--tokens", count, *flags).split("---\n")]


def same(texts):
    return [text.removesuffix("\n") for text in texts]


@pytest.mark.parametrize("penalty", [1.3, 2.5, 0.7])
def test_repetition_penalty(penalty, judge, trained):  # noqa: F811
    tokens = numbers("abc d")
    for _ in range(COUNT):
        tokens.append(int(judge(tokens, penalty).argmax()))
    assert shown(trained, "--prompt", "abc d", "--temperature", "0", "--repetition-penalty", penalty) == same([text_of(tokens)])


@pytest.mark.parametrize("beams, stops, penalty", [(2, (), 1.0), (4, (), 1.0), (3, (" ", "\n"), 1.0), (5, ("g",), 1.2), (40, (), 1.0)], ids=str)
def test_beams(beams, stops, penalty, judge, trained):  # noqa: F811
    expected = beam_search(judge, "abc d", beams, stops, penalty)
    flags = [part for stop in stops for part in ("--stop", stop)]
    found = shown(trained, "--prompt", "abc d", "--beams", beams, "--batch", min(beams, 4), "--repetition-penalty", penalty, *flags)
    assert found == same(expected[:4])
    assert shown(trained, "--prompt", "abc d", "--beams", beams, "--repetition-penalty", penalty, *flags) == same(expected[:1])


@pytest.mark.parametrize("stops", [(" ",), ("\n", "o"), ("no\n", "no "), ("hi", "gh", "ghi"), ("fgh ij klmno pq abc",)], ids=str)
def test_stops_cut_each_text_alone(stops, trained):  # noqa: F811
    prompt = ("--prompt", "abc d", "--batch", "6")
    whole = shown(trained, *prompt, count=60)
    flags = [part for stop in stops for part in ("--stop", stop)]
    assert shown(trained, *prompt, *flags, count=60) == same("abc d" + cut(text[5:], stops)[0] for text in whole)
    assert len(set(whole)) == 6


def test_the_prompt_may_have_what_stops(trained):  # noqa: F811
    text, = shown(trained, "--prompt", "abc ", "--stop", "c ", "--stop", "abc", "--seed", "3")
    assert text.startswith("abc ") and len(text) > 5


def test_texts_are_those_of_their_number(trained):  # noqa: F811
    """However many there are; and those of one prompt are the same beside another's."""
    few, many = (shown(trained, "--prompt", "fg", "--batch", n) for n in (2, 5))
    assert many[:2] == few and shown(trained, "--prompt", "fg") == few[:1] and len(set(many)) == 5
    assert shown(trained, "--prompt", "fg", "--prompt", "ij", "--batch", "2") == [*few, *shown(trained, "--prompt", "ij", "--batch", "2")]


def test_how_many_tokens_were_drawn(trained):  # noqa: F811
    program, weights = trained
    done = program("generate", "--load", weights, "--prompt", "abc d", "--temperature", "0", "--stop", " ", "--batch", "3", "--tokens", "20")
    word = done.stdout.split("---\n")[0].removesuffix("\n")
    assert done.stderr.startswith(f"{3 * (len(word) - 5 + 1)} tokens in ")


@pytest.mark.parametrize("flags, message", [
    (("--min-p", "1.5"), "--min-p is from 0 to 1, not 1.5"),
    (("--repetition-penalty", "0"), "--repetition-penalty is above 0 and finite, not 0"),
    (("--beams", "0"), "--beams is from 1 to 1024, not 0"),
    (("--batch", "0"), "--batch is from 1 to"),
    (("--beams", "2", "--batch", "3"), "--batch: the 3 best of 2 beams are asked for"),
    (("--beams", "2", "--top-k", "3"), "--beams draws nothing: it goes without temperature, top-k, top-p and min-p"),
    (("--beams", "2", "--temperature", "0.5"), "--beams draws nothing"),
    (("--stop", ""), "--stop needs a value: --stop TEXT"),
    (("--prompt", "a", "--stop", "no€"), "stop:1:3: '€' is none of the"),
    (("--num-beams", "2"), "unknown flag --num-beams; did you mean --beams?")])
def test_bad_rules(flags, message, trained):  # noqa: F811
    assert message in generate(trained, *flags, code=BAD_DATA if "none of" in message else USAGE)


def test_stops_within_byte_pairs(of_pieces):  # noqa: F811
    """They begin and end anywhere in tokens, also in the middle of what is one."""
    program, folder = of_pieces

    def made(*flags):
        return recited(program, folder, "--prompt", "Hello", "--tokenizer", folder / "tokenizer.json", *flags).stdout.removesuffix("\n")

    text = made()
    assert text.startswith("Hello größe ☃ Hello world, größe")
    for stop in ("ö", "☃ H", " wor", ", gr", "ld", "ße ☃"):
        assert made("--stop", stop) == text[:text.index(stop, 5)]
    assert made("--stop", "☄") == text  # begins as ☃ does


def test_stops_that_are_numbers(reciting):  # noqa: F811
    program, folder = reciting
    prompt = "72 101"
    found = recited(program, folder, "--prompt", prompt).stdout.split()
    stop = found[5:7]
    assert recited(program, folder, "--prompt", prompt, "--stop", " ".join(stop)).stdout.split() == found[:5]
    part = stop[0][-1]  # of a number that has two digits at least
    if part not in found[2:] and len(stop[0]) > 1:
        assert recited(program, folder, "--prompt", prompt, "--stop", part).stdout.split() == found
    refused = recited(program, folder, "--prompt", prompt, "--stop", "word", check=False)
    assert refused.returncode == BAD_DATA and "found 'word'" in refused.stderr


def test_a_model_of_bytes_stops_at_bytes(compile_model, tmp_path):
    """Whatever is around them: this one has learned little, and what it writes is no UTF-8."""
    (tmp_path / "input.txt").write_text("größe ☃ 𝄞 " * 60)
    model = model_of(MODELS["embedding"].replace("19", "256"), 'text("input.txt", level = "byte")').replace("class[19]", "class[256]")
    program = compile_model(model)
    program("--data", tmp_path, "--epochs", "1", "--save", tmp_path / "w", "--quiet")

    def made(*flags):
        command = [program.path, "generate", "--load", tmp_path / "w", "--prompt", "g", "--tokens", "200", "--seed", "5", *flags]
        return subprocess.run(command, capture_output=True, check=True).stdout.removesuffix(b"\n")

    whole = made()
    for byte in sorted(set(whole[1:]) & set(b"abcdefghijklmnopqrstuvwxyz"))[:3]:
        assert whole[:whole.index(byte, 1)].startswith(made("--stop", bytes([byte])))
        assert whole.index(byte, 1) - len(made("--stop", bytes([byte]))) < 4  # of a character that was not complete
