"""Windows of texts and of files of tokens: what is read, what is refused, where windows begin. The runtime alone, under
sanitizers; tests/runtime/test_text.py trains on them."""

import gzip
import os
import subprocess

import numpy as np
import pytest

from conftest import ROOT
from runtime_library import SANITIZERS, build_program

BAD_DATA, NO_INPUT = 65, 66


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("windows") / "windows"
    return build_program(path, [ROOT / "tests/runtime/windows.c"], library_flags=SANITIZERS)


@pytest.fixture
def read(program, tmp_path):
    """read(content, format, classes, length, stride, *arguments): the windows of each split, the characters; or the fault."""

    def run(content, format, classes, length, stride, *args, code=0, name="data"):
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        splits = [] if any(":" in str(arg) for arg in args) else ["train:0:1"]
        done = subprocess.run([program, format, name, *map(str, (classes, length, stride, *args)), *splits], cwd=tmp_path,
                              capture_output=True, timeout=60, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
        assert done.returncode == code, done.stdout + done.stderr
        if code:
            return done.stderr.decode().strip()
        if "--encode" in args:
            numbers, _, text = done.stdout.partition(b"\n")
            return [int(number) for number in numbers.split()], text.decode()
        sets = {}
        for line in done.stdout.decode().splitlines():
            split, *tokens = line.split()
            sets.setdefault(split, []).append([int(token) for token in tokens])
        return sets, done.stderr.decode().splitlines()

    run.folder = tmp_path
    return run


def windows(tokens, length, stride):
    return [list(tokens[at:at + length]) for at in range(0, len(tokens) - length + 1, stride)]


# ---- texts ----

TEXT = "to be,\nor nöt to be\t– ☃ 🙂"


@pytest.mark.parametrize("length, stride", [(5, 4), (1, 1), (2, 1), (3, 3), (4, 9), (len(TEXT), 1)])
def test_characters(read, length, stride):
    """The distinct characters, in the order of their code points, are the classes."""
    characters = sorted(set(TEXT))
    sets, learned = read(TEXT, "characters", 40, length, stride)
    assert sets["train"] == windows([characters.index(c) for c in TEXT], length, stride)
    assert learned == [{"\n": "\\n", "\t": "\\t"}.get(c, c) for c in characters]


def test_compressed(read):
    assert read(gzip.compress(TEXT.encode()), "characters", 40, 5, 4) == read(TEXT, "characters", 40, 5, 4)
    long = "abcdefg " * 300_000
    assert len(read(gzip.compress(long.encode()), "characters", 8, 1000, 1000)[0]["train"]) == 2400


def test_many_characters_take_two_bytes(read):
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 700)))
    assert read(text, "characters", 700, 10, 9)[0]["train"] == windows(range(700), 10, 9)


def test_bytes(read):
    content = bytes(range(256)) * 2
    sets, learned = read(content, "bytes", 256, 9, 8)
    assert sets["train"] == windows(content, 9, 8)
    assert learned == []


def test_a_split_is_cut_in_order(read):
    """Training windows lie within the first part of the characters, the others behind; all have the whole text's classes."""
    text = "abcdefghijklmnopqrstuvwxyz" * 4 + "!?"
    characters = sorted(set(text))
    tokens = [characters.index(c) for c in text]
    first, second = round(0.8 * len(text)), round(0.9 * len(text))
    sets, _ = read(text, "characters", 28, 4, 3, "train:0:0.8", "validation:0.8:0.9", "test:0.9:1")
    assert sets["train"] == windows(tokens[:first], 4, 3)
    assert sets["validation"] == windows(tokens[first:second], 4, 3)
    assert sets["test"] == windows(tokens[second:], 4, 3)


def test_examples_to_predict(read):
    (read.folder / "more").write_text("eb ot")
    sets, _ = read(TEXT, "characters", 40, 3, 2, "--input", "more")
    characters = sorted(set(TEXT))
    assert sets["input"] == windows([characters.index(c) for c in "eb ot"], 3, 2)


BAD_TEXTS = {
    "empty": ("", 9, "data: is empty"),
    "short": ("abcd", 9, "data: has 4 characters, and a window of 'window' has 5"),
    "short of characters, not of bytes": ("äöü", 9, "has 3 characters"),
    "many characters": ("abcdefghijkl", 9, "data: has 12 distinct characters, and 'window' is class[9][5]"),
    "how many are needed": ("abcdefghijkl", 9, "'window : class[12][5]' has room for them"),
    "a byte that begins nothing": (b"ab\ncd\xff", 9, "data:2:3: expected text in UTF-8, found the byte 0xff"),
    "a character that is cut off": ("abc€".encode()[:-1], 9, "data:1:4: expected text in UTF-8, found the byte 0xe2"),
    "a surrogate": (b"abc\xed\xa0\x80", 9, "data:1:4: expected text in UTF-8"),
    "zero": (b"abc\0def", 9, "data:1:4: expected text in UTF-8, found the byte 0x00"),
}


@pytest.mark.parametrize("case", BAD_TEXTS)
def test_bad_text(case, read):
    content, classes, says = BAD_TEXTS[case]
    assert says in read(content, "characters", classes, 5, 4, code=BAD_DATA)


def test_a_part_that_is_too_short(read):
    message = read("abcd" * 10, "characters", 9, 5, 4, "train:0:0.9", "test:0.9:1", code=BAD_DATA)
    assert message == "./data: 'test', 10% of 40 characters, has 4 characters, and a window of 'window' has 5"


@pytest.mark.parametrize("text, says", [("to be\nor\nnøt", "more:3:2: 'ø' is none of the 14 characters that the model knows"),
                                        ("to\vbe or", "more:1:3: '\\u000b' is none of"),
                                        ("to\u2028be or", "more:1:3: '\\u2028' is none of")])
def test_a_character_that_training_did_not_have(text, says, read):
    (read.folder / "more").write_text(text)
    assert says in read(TEXT, "characters", 40, 3, 2, "--input", "more", code=BAD_DATA)


# ---- prompts ----


def test_prompts(read):
    characters = sorted(set(TEXT))
    nothing = "\ufffd"
    assert read(TEXT, "characters", 40, 3, 2, "--encode", "not ☃🙂") == \
        ([characters.index(c) for c in "not ☃🙂"], "not ☃🙂" + nothing)
    assert read(TEXT, "bytes", 256, 3, 2, "--encode", "nøt") == (list("nøt".encode()), "nøt" + nothing)
    assert read(np.arange(99, dtype="<u2").tobytes(), "tokens", 99, 3, 2, "--encode", "7, 98\n0") == ([7, 98, 0], "7 98 0 99 ")
    assert read(TEXT, "characters", 40, 3, 2, "--encode", "") == ([], nothing)


@pytest.mark.parametrize("prompt, says", [("1 99", "--prompt:1:3: expected a token, a whole number from 0 to 98, found '99'"),
                                          ("1\n-1", "--prompt:2:1: expected a token"), ("1x", "found '1x'"),
                                          ("99999999999999999999", "expected a token")])
def test_prompts_that_are_no_tokens(prompt, says, read):
    assert says in read(np.arange(99, dtype="<u2").tobytes(), "tokens", 99, 3, 2, "--encode", prompt, code=BAD_DATA)


def test_prompt_with_another_character(read):
    assert "--prompt:1:2: 'ä' is none of" in read(TEXT, "characters", 40, 3, 2, "--encode", "bär", code=BAD_DATA)


# ---- files of tokens ----


def file_of(tokens, magic=20240520, version=1, dtype="<u2", count=None):
    header = np.zeros(256, "<i4")
    header[:3] = magic, version, len(tokens) if count is None else count
    return header.tobytes() + np.asarray(tokens).astype(dtype).tobytes()


TOKENS = np.random.default_rng(0).integers(0, 50257, 1000)


@pytest.mark.parametrize("content", [TOKENS.astype("<u2").tobytes(), file_of(TOKENS), gzip.compress(file_of(TOKENS)),
                                     file_of(TOKENS, 20240801, 7, "<u4")], ids=["plain", "header", "gzip", "32 bits"])
def test_tokens(content, read):
    for classes in (50257, 100_000):
        assert read(content, "tokens", classes, 65, 64)[0]["train"] == windows(TOKENS, 65, 64)


def test_few_classes_take_a_byte(read):
    tokens = TOKENS % 256
    assert read(file_of(tokens), "tokens", 256, 65, 64)[0]["train"] == windows(tokens, 65, 64)


def test_large_tokens(read):
    tokens = TOKENS + 70_000
    assert read(file_of(tokens, 20240801, 7, "<u4"), "tokens", 128256, 65, 64)[0]["train"] == windows(tokens, 65, 64)


BAD_TOKENS = {
    "empty": (b"", "data: has 0 tokens, and a window of 'window' has 65"),
    "short": (file_of(TOKENS[:64]), "data: has 64 tokens, and a window of 'window' has 65"),
    "odd": (bytes(1001), "data: has 1001 bytes: without a header tokens have two each"),
    "other magic": (file_of(TOKENS, magic=20240521), "its header has the magic 20240521: expected 20240520 (tokens of 16 bits) or 20240801"),
    "magic of the other byte order": (file_of(TOKENS, magic=0x48D73401, version=1), "its header has the magic 1222063105"),
    "other version": (file_of(TOKENS, version=2), "tokens with the magic 20240520 have version 1, found 2"),
    "header cut off": (file_of(TOKENS)[:1000], "is cut off: its header has 1024 bytes, found 1000"),
    "cut off": (file_of(TOKENS)[:-2], "is cut off: its header promises 1000 tokens, 2000 bytes behind it, found 1998"),
    "half a token": (file_of(TOKENS)[:-1], "promises 1000 tokens, 2000 bytes behind it, found 1999"),
    "too long": (file_of(TOKENS) + b"\0\0", "is too long: its header promises 1000 tokens, 2000 bytes behind it, found 2002"),
    "negative count": (file_of(TOKENS, count=-1), "is cut off: its header promises 4294967295 tokens"),
    "too large": (file_of([*TOKENS[:500], 50257, *TOKENS]), "data: token 500, counted from 0, is 50257; field 'window' is class[50257][65], so expected 0 to 50256"),
    "not 16 bits": (file_of(TOKENS.astype("u4") << 8, 20240801, 7, "<u4"), "token 0, counted from 0, is"),
}


@pytest.mark.parametrize("case", BAD_TOKENS)
def test_bad_tokens(case, read):
    content, says = BAD_TOKENS[case]
    assert says in read(content, "tokens", 50257, 65, 64, code=BAD_DATA)


@pytest.mark.parametrize("size", [0, 1024, 5000, 5022], ids=["all", "all tokens", "a page", "within a page"])
def test_a_file_that_becomes_shorter(size, read):
    """Once it is open. Behind its new end, the last page reads as 0, which is a token too; further pages stop the program."""
    message = read(file_of([*TOKENS] * 2), "tokens", 50257, 65, 64, "--cut", size, code=NO_INPUT)
    assert message == "./data: was changed while it was read"


def test_bytes_that_become_fewer(read):
    assert read(bytes(20_000), "bytes", 256, 65, 64, "--cut", 10_000, code=NO_INPUT) == "./data: was changed while it was read"


def test_a_token_that_becomes_too_large(read):
    """Where nothing else tells that the file was changed: a token is looked at whenever it is used."""
    says = "./data: token 500, counted from 0, is 65535; field 'window' is class[50257][65], so expected 0 to 50256"
    assert read(file_of(TOKENS), "tokens", 50257, 65, 64, "--put", 1024 + 1000, code=BAD_DATA) == says


def test_tokens_are_looked_at_where_they_are_used(read):
    content = file_of([*TOKENS, 50257])
    assert len(read(content, "tokens", 50257, 65, 64, "train:0:0.9")[0]["train"]) == 14
    assert "token 1000" in read(content, "tokens", 50257, 65, 1, "train:0:0.9", "test:0.9:1", code=BAD_DATA)


def test_a_compressed_file_is_in_memory(read):
    content = gzip.compress(file_of(TOKENS))
    assert read(content, "tokens", 50257, 65, 64, "--cut", 100)[0]["train"] == windows(TOKENS, 65, 64)


@pytest.mark.parametrize("dtype", ["<u4", "<i8"])
@pytest.mark.parametrize("classes", [50257, 128256])
def test_wide_tokens_without_a_header(dtype, classes, read):
    tokens = np.random.default_rng(0).integers(0, classes, 4000)
    message = read(tokens.astype(dtype).tobytes(), "tokens", classes, 9, 8, code=BAD_DATA)
    assert "look like tokens of 32 or 64 bits, and without a header tokens have 16" in message
    assert "write 16 bits (NumPy: '<u2'), or 32 behind the header that has the magic 20240801" in message


@pytest.mark.parametrize("tokens", [[0] * 4000, [7, 0] * 60, [1, 0] * 2000 + [3, 2], [5] * 4000])
def test_narrow_tokens_without_a_header(tokens, read):
    """All the same, few, or one that breaks the rule: no reason to doubt them."""
    sets, _ = read(np.array(tokens, "<u2").tobytes(), "tokens", 10, 9, 8)
    assert sets["train"] == windows(tokens, 9, 8)
