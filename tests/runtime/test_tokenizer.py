"""mtc tokens: texts as the tokens of a tokenizer, compared with the definition (bpe.py) and with the packages tokenizers and tiktoken."""

import gzip
import json
import os
import random
import subprocess

import numpy as np
import pytest

import bpe
from conftest import MTC

pytestmark = pytest.mark.quick
USAGE, BAD_DATA, NO_INPUT, CANT_CREATE = 64, 65, 66, 73

SENTENCES = """The cat's hat wasn't there; they've said: "I'll go, you'd stay, we're 12 345 and I'm 3.14!"
DON'T SHOUT, WE'LL SEE. naïve café, Ελλάδα, Привет мир, 你好，世界。 日本語のテキスト! 한국어 텍스트 नमस्ते ٣٤٥ Ⅷ ½
\tif (x != y) {\r\n\t\treturn a[i] + b[j];   /* why? */\r\n\t}\n\n\n  👩‍👩‍👧 🎉🎉 ſ 'ſ it'ſ  \u00a0\u2003x \u3000 y\u0085z e\u0301
"""
PIECES = [*SENTENCES.split(" "), *"\r\n \t'", "'s", "'LL", "'Ve", " ", "  ", "\n\n", " \n", "\r\n\r\n", "!!\n\n", "...", "1234567",
          "<|end of text|>", "<|end of text|>>", "<|end", "of text|>", "quux", "quuxly"]
BROKEN = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xc0\xaf", b"\xf5\x80\x80\x80", b"\x80", b"\0", b"\xf4\x90\x80\x80"]
ADDED, LATE = ["<|end of text|>", "<|end of text|>>", "\n<|n|>\n"], ["quux", "|end"]


def mixed(seed, size, broken=True):
    draw = random.Random(seed)
    text = bytearray()
    while len(text) < size:
        text += b"".join(draw.choice(BROKEN) if broken and draw.random() < 0.05 else draw.choice(PIECES).encode() for _ in range(100))
        text += draw.choice([b" ", b"", b"\n"])
    return bytes(text)


@pytest.fixture(scope="module", params=["gpt2", "llama3", "added", "whole"])
def tokenizer(request):
    pattern = bpe.LLAMA3 if request.param in ("llama3", "whole") else bpe.GPT2
    merges = bpe.learn(mixed(0, 20000).replace(b"quux", b"").replace(b"|end", b""), 300, pattern)  # added tokens are no others
    added = {"added": {"added": ADDED, "late": LATE}, "whole": {"whole": [b"naive", b" return", "你好".encode()]}}
    return bpe.Tokenizer(merges, pattern, **added.get(request.param, {}))


def call(folder, *args, **environment):
    return subprocess.run([MTC, "tokens", *map(str, args)], cwd=folder, env={**os.environ, "NO_COLOR": "1", **environment},
                          capture_output=True, text=True)


def read_tokens(path):
    header = np.frombuffer(path.read_bytes()[:1024], "<u4")
    kind = {(20240520, 1): "<u2", (20240801, 7): "<u4"}[tuple(header[:2])]
    tokens = np.frombuffer(path.read_bytes()[1024:], kind)
    assert header[2] == len(tokens) and not header[3:].any()
    return tokens


def encode(folder, tokenizer, data, **environment):
    path = tokenizer if not isinstance(tokenizer, bpe.Tokenizer) else tokenizer.save(folder / "tokenizer.json")
    (folder / "text").write_bytes(data)
    done = call(folder, "text", "--tokenizer", path, "-o", "text.bin", **environment)
    assert done.returncode == 0, done.stderr
    return read_tokens(folder / "text.bin")


# ---- tokens ----


def test_tokens_are_those_of_the_definition(tokenizer, tmp_path):
    data = mixed(1, 60000)
    tokens = encode(tmp_path, tokenizer, data).tolist()
    assert tokens == tokenizer.encode(data)
    assert tokenizer.decode(tokens) == data


@pytest.mark.parametrize("text", ["a", " ", "\n", "  ", "a ", " a", "a  ", "\r\n", "x \r\n\r\n y", "'", "''s", "a'", "'re", "'r", "'L", "1", "12345",
                                  " 123", "\t1", "!a", " !a", "!!a", "\ta", "\na", "\u3000a", "a\u2028\u2028b", "'ſ", "<|end of text|>",
                                  "x<|end of text|>>y", "  <|end of text|>  ", "quux", "xquuxly"])
def test_short_texts(tokenizer, tmp_path, text):
    assert encode(tmp_path, tokenizer, text.encode()).tolist() == tokenizer.encode(text.encode())


def test_every_character_has_its_class(tmp_path):
    """Those that the definition's Unicode, which may be older, knows."""
    import unicodedata
    known = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"]
    data = "".join(f"a{c} {c}b1{c}2\n" for c in known[::3]).encode()
    tokenizer = bpe.Tokenizer([(b"a", b" "), (b" ", b"b")], bpe.LLAMA3)
    assert encode(tmp_path, tokenizer, data).tolist() == tokenizer.encode(data)


def test_any_number_of_threads_writes_the_same(tokenizer, tmp_path):
    """A text of several pieces: what is cut between them is what the definition cuts."""
    data = mixed(2, 700000)
    one = encode(tmp_path, tokenizer, data, OMP_NUM_THREADS="1")
    four = encode(tmp_path, tokenizer, data, OMP_THREAD_LIMIT="4")
    assert one.tolist() == four.tolist() == tokenizer.encode(data)


def test_line_ends_stay_with_what_is_before_them(tmp_path):
    """Where lines count, no text is cut between them, however long it takes until it may be."""
    tokenizer = bpe.Tokenizer([(b"!", b"\n"), (b"a", b"\n")], bpe.LLAMA3)
    tokens = encode(tmp_path, tokenizer, b"!\n" * 200000 + b" a\n")
    assert tokens.tolist() == [256] * 200000 + list(b" a\n")


def test_texts_stand_one_behind_the_other(tmp_path):
    tokenizer = bpe.Tokenizer([(b"a", b"b")])
    tokenizer.save(tmp_path / "t.json")
    (tmp_path / "one").write_bytes(b"xa")
    (tmp_path / "two.gz").write_bytes(gzip.compress(b"bab"))
    (tmp_path / "none").write_bytes(b"")
    done = call(tmp_path, "one", "none", "two.gz", "--tokenizer", "t.json", "-o", "all.bin")
    assert done.returncode == 0 and "all.bin: 4 tokens of 16 bits, class[257]" in done.stderr
    assert read_tokens(tmp_path / "all.bin").tolist() == [ord("x"), ord("a"), ord("b"), 256]


def test_numbers_beyond_16_bits_take_32(tmp_path):
    document = bpe.Tokenizer([(b"a", b"b")]).json()
    document["added_tokens"] = [{"id": 70000, "content": "<far>"}]
    (tmp_path / "t.json").write_text(json.dumps(document))
    tokens = encode(tmp_path, tmp_path / "t.json", b"ab<far>")
    assert tokens.dtype == np.uint32 and tokens.tolist() == [256, 70000]


def test_vocabulary_with_merges_beside(tmp_path):
    tokenizer = bpe.Tokenizer(bpe.learn(mixed(3, 20000), 200))
    (tmp_path / "small-vocab.json").write_text(json.dumps(tokenizer.vocabulary()))
    lines = [f"{bpe.written(a)} {bpe.written(b)}" for a, b in tokenizer.merges]
    (tmp_path / "small-merges.txt").write_text("\n".join(["#version: 0.2", *lines, ""]))
    data = mixed(4, 20000)
    assert encode(tmp_path, tmp_path / "small-vocab.json", data).tolist() == tokenizer.encode(data)


def test_merges_as_strings(tmp_path):
    tokenizer = bpe.Tokenizer(bpe.learn(mixed(3, 20000), 100))
    document = tokenizer.json()
    document["model"]["merges"] = [" ".join(pair) for pair in document["model"]["merges"]]
    (tmp_path / "t.json").write_text(json.dumps(document))
    data = mixed(4, 20000)
    assert encode(tmp_path, tmp_path / "t.json", data).tolist() == tokenizer.encode(data)


# ---- learning ----


def learned(folder, data, count):
    (folder / "text").write_bytes(data)
    done = call(folder, "text", "--learn", count, "-o", "learned.json")
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "learned.json").read_text()), done.stderr


@pytest.mark.parametrize("seed", [6, 7])
def test_learned_merges_are_those_of_the_definition(tmp_path, seed):
    data = mixed(seed, 30000)
    document, _ = learned(tmp_path, data, 700)
    merges = bpe.learn(data, 700)
    expected = bpe.Tokenizer(merges[:len(document["model"]["merges"])])
    assert document["model"]["merges"] == [f"{bpe.written(a)} {bpe.written(b)}" for a, b in expected.merges]
    assert document["model"]["vocab"] == expected.vocabulary() and len(expected.vocabulary()) == 700
    assert encode(tmp_path, tmp_path / "learned.json", mixed(8, 30000)).tolist() == expected.encode(mixed(8, 30000))


@pytest.mark.parametrize("text, merges", [
    ("aaa aaaa aaaaa", ["a a", "Ġ aa", "Ġaa aa", "Ġaaaa a", "aa a"]),  # of three equal parts the first two; each place once
    ("ab ba ab ba", ["Ġ b", "Ġb a", "a b", "Ġ ab"]),  # met equally often: by the bytes of the left, then of the right
    ('"\\" "\\"', ['" \\', '"\\ "', 'Ġ "\\"'])])
def test_learning_by_hand(tmp_path, text, merges):
    document, _ = learned(tmp_path, text.encode(), 256 + len(merges))
    assert document["model"]["merges"] == merges


def test_learning_ends_where_there_is_no_more(tmp_path):
    document, said = learned(tmp_path, b"abab cd", 300)
    assert len(document["model"]["vocab"]) == 260 and "has 260 tokens, not 300: the texts have no more to learn" in said


def test_tokenizers_loads_what_was_learned(tmp_path):
    package = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    learned(tmp_path, mixed(9, 100000), 1000)
    data = mixed(10, 100000, broken=False)
    other = package.Tokenizer.from_file(str(tmp_path / "learned.json"))
    tokens = encode(tmp_path, tmp_path / "learned.json", data).tolist()
    assert tokens == other.encode(data.decode()).ids and other.decode(tokens) == data.decode()


# ---- other implementations ----


def test_tokenizers_has_the_same_tokens(tokenizer, tmp_path):
    package = pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    data = mixed(5, 300000, broken=False)
    tokens = encode(tmp_path, tokenizer, data)
    assert tokens.tolist() == package.Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(data.decode()).ids


def test_tiktoken_has_the_same_tokens(tmp_path):
    package = pytest.importorskip("tiktoken", reason="the package tiktoken is not installed")
    tokenizer = bpe.Tokenizer(bpe.learn(mixed(0, 20000), 300, bpe.LLAMA3), bpe.LLAMA3)
    other = package.Encoding("small", pat_str=bpe.LLAMA3, mergeable_ranks=tokenizer.numbers, special_tokens={})
    data = mixed(5, 300000, broken=False)
    assert encode(tmp_path, tokenizer, data).tolist() == other.encode_ordinary(data.decode())


# ---- what is refused ----


def changed(**members):
    def change(document):
        document.update(members)
    return change


def model_with(**members):
    def change(document):
        document["model"].update(members)
    return change


def dropped(token):
    def change(document):
        del document["model"]["vocab"][token]
    return change


def merges(*pairs):
    return model_with(merges=list(pairs))


def added(**members):
    token = {"id": 300, "content": "<x>", **members}
    return changed(added_tokens=[token, {"id": 301, "content": "<y>"}])


@pytest.mark.parametrize("change, message", [
    (changed(normalizer={"type": "NFC"}), 'normalizer is of the type "NFC": expected null'),
    (changed(truncation={"max_length": 5}), "truncation is an object: expected null"),
    (changed(post_processor={"type": "TemplateProcessing"}), 'post_processor is of the type "TemplateProcessing": expected null or "ByteLevel"'),
    (changed(post_processor={"type": "Sequence", "processors": []}), "write null there, in a copy of the file"),
    (changed(decoder={"type": "WordPiece"}), 'decoder is of the type "WordPiece"'),
    (changed(pre_tokenizer=None), 'pre_tokenizer is null: expected "ByteLevel"'),
    (changed(pre_tokenizer={"type": "Metaspace"}), 'pre_tokenizer is of the type "Metaspace"'),
    (changed(pre_tokenizer={"type": "ByteLevel"}), 'pre_tokenizer adds a space before the text: expected "add_prefix_space": false'),
    (changed(pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}), 'expected "use_regex": true'),
    (changed(pre_tokenizer={"type": "Sequence", "pretokenizers": []}), "a sequence of other steps than a Split and a ByteLevel"),
    (changed(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "a+"}}, {"type": "ByteLevel"}]}),
     "has another pattern than that of GPT-2 and that of Llama 3: a+"),
    (changed(extra=1), 'the file has a member "extra", which means nothing here'),
    (model_with(type="WordPiece"), 'the type of the model is "WordPiece": expected "BPE"'),
    (model_with(dropout=0.1), "dropout is a number: expected null"),
    (model_with(end_of_word_suffix="</w>"), 'end_of_word_suffix is "</w>": expected null'),
    (model_with(ignore_merges="yes"), 'ignore_merges is "yes": expected true or false'),
    (model_with(cache=1), 'the model has a member "cache"'),
    (model_with(vocab=[]), 'the model\'s "vocab" is a list: expected an object'),
    (model_with(merges=None), 'the model\'s "merges" is null: expected a list'),
    (model_with(vocab={"a": -1}), 'the vocabulary: the number of "a" is none from 0 to 4194303'),
    (model_with(vocab={"a": 1e9}), 'the number of "a" is none from 0'),
    (model_with(vocab={"a": 1, "b": 1}), 'two tokens have the number 1; "b" is one of them'),
    (model_with(vocab={"▁a": 1}), 'the vocabulary has "▁a", number 1, which is not written as bytes are'),
    (model_with(vocab={"": 1}), 'the vocabulary has "", number 1, which is not written as bytes are'),
    (model_with(vocab={}, merges=[]), "256 of the 256 bytes are no tokens, 0x00 among them"),
    (dropped("a"), "1 of the 256 bytes are no tokens, 0x61 among them"),
    (dropped("ab"), "merge 0, counted from 0: what it makes is no token of the vocabulary"),
    (merges(["a", "b"], ["ab", "zz"]), 'merge 1, counted from 0: "zz" is no token of the vocabulary'),
    (merges(["a", "b"], ["a", "b"]), "merge 1, counted from 0: the same pair was merged before"),
    (merges("ab"), "merge 0, counted from 0: expected two tokens with a space between"),
    (merges("a b c"), "expected two tokens with a space between"),
    (merges(["a"]), "merge 0, counted from 0: expected two tokens, as a list or with a space between"),
    (merges(["", "b"]), '"" is no token of the vocabulary'),
    (added(lstrip=True), '"<x>" is to be found with "lstrip": expected false'),
    (added(normalized=0), "normalized is a number: expected true or false"),
    (added(content=""), "added_tokens: number 300 has no text"),
    (added(id=301), "added_tokens: two have the number 301"),
    (added(id=97), 'two tokens have the number 97; "<x>" is one of them'),
    (added(content="ab"), 'added_tokens: "ab" is number 300, and number 256 in the vocabulary'),
    (added(content="é"), 'added_tokens: "é" is number 300, and number 233 in the vocabulary'),
    (added(content="<y>"), "added_tokens: the numbers 300 and 301 have the same text"),
    (added(content=7), 'added_tokens: "content" is a number: expected a string'),
])
def test_what_would_mean_other_tokens_is_refused(tmp_path, change, message):
    document = bpe.Tokenizer([(b"a", b"b")]).json()
    change(document)
    (tmp_path / "t.json").write_text(json.dumps(document))
    (tmp_path / "text").write_text("ab")
    done = call(tmp_path, "text", "--tokenizer", "t.json", "-o", "text.bin")
    assert done.returncode == BAD_DATA and "t.json: " in done.stderr and message in done.stderr, done.stderr
    assert not (tmp_path / "text.bin").exists()


@pytest.mark.parametrize("content, message", [
    ("", "bad JSON at byte 0"), ("[]", "the file is a list: expected an object"), ("{", "bad JSON"), ("[" * 100, "nested too deeply"),
    ('{"model": {"type": "BPE"}} x', "more after the end"), ('{"a": 1, "a": 2}', 'the name "a" occurs twice'), ('{"a\\u0000": 1}', "bad JSON at byte 9"),
    ('{"a": 1}', 'has no "model": it is no tokenizer.json')])
def test_no_tokenizer(tmp_path, content, message):
    (tmp_path / "t.json").write_text(content)
    (tmp_path / "text").write_text("ab")
    done = call(tmp_path, "text", "--tokenizer", "t.json", "-o", "text.bin")
    assert done.returncode == BAD_DATA and "t.json: " in done.stderr and message in done.stderr, done.stderr


@pytest.mark.parametrize("text, message", [
    ("a b\nab  b\n", "merge 1, counted from 0: expected two tokens"), ("a b\r\n", "is no token of the vocabulary"), ("a b\n\n", "merge 1"),
    ("a b\0", "byte 3 is NUL"), (None, "cannot open")])
def test_merges_beside_are_read_as_strictly(tmp_path, text, message):
    (tmp_path / "vocab.json").write_text(json.dumps(bpe.Tokenizer([(b"a", b"b")]).vocabulary()))
    if text is not None:
        (tmp_path / "merges.txt").write_text(text, newline="")
    (tmp_path / "text").write_text("ab")
    done = call(tmp_path, "text", "--tokenizer", "vocab.json", "-o", "text.bin")
    assert done.returncode in (BAD_DATA, NO_INPUT) and "merges.txt: " in done.stderr and message in done.stderr, done.stderr


# ---- the command ----


@pytest.fixture
def folder(tmp_path):
    bpe.Tokenizer([(b"a", b"b")]).save(tmp_path / "t.json")
    (tmp_path / "text").write_text("abab")
    (tmp_path / "empty").write_text("")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


def test_help_is_of_this_command(tmp_path):
    done = call(tmp_path, "--help")
    assert done.returncode == 0 and "-o FILE.bin" in done.stdout and "the program to write" not in done.stdout


@pytest.mark.parametrize("args, code, message", [
    ([], USAGE, "no text to encode"),
    (["text", "-o", "x.bin"], USAGE, "--tokenizer FILE says which tokens; --learn N makes a tokenizer"),
    (["text", "--tokenizer", "t.json"], USAGE, "-o FILE says where the result is written"),
    (["text", "--tokenizer", "t.json", "--learn", "300", "-o", "x.json"], USAGE, "choose one of --tokenizer and --learn"),
    (["text", "--learn", "256", "-o", "x.json"], USAGE, "each of the 256 bytes is a token"),
    (["text", "--learn", "300", "-o", "x.bin"], USAGE, "the name promises tokens; what --learn writes is a tokenizer (.json): -o tokenizer.json"),
    (["text", "--learn", "300", "-o", "x.npy"], USAGE, "the name promises an array of NumPy; what can be written is a tokenizer (.json)"),
    (["text", "--learn", "300", "-o", "none/x.json"], CANT_CREATE, "there is no folder 'none'"),
    (["text", "none", "--learn", "300", "-o", "x.json"], NO_INPUT, "none: cannot open"),
    (["empty", "--learn", "300", "-o", "x.json"], BAD_DATA, "empty: there is no text in it"),
    (["text", "--learn", "300", "-o", "text"], CANT_CREATE, "it is the input"),
    (["text", "--tokenizer", "t.json", "-o", "x.npy"], USAGE, "the name promises an array of NumPy"),
    (["text", "--tokenizer", "t.json", "-o", "x.bin", "--batch", "3"], USAGE, "tokens has no option --batch"),
    (["none", "--tokenizer", "t.json", "-o", "x.bin"], NO_INPUT, "none: cannot open"),
    (["text", "--tokenizer", "none.json", "-o", "x.bin"], NO_INPUT, "none.json: cannot open"),
    (["empty", "--tokenizer", "t.json", "-o", "x.bin"], BAD_DATA, "there is no text in the file"),
    (["text", "--tokenizer", "t.json", "-o", "text"], CANT_CREATE, "it is the input"),
    (["text", "--tokenizer", "t.json", "-o", "t.json"], USAGE, "the name promises"),
    (["empty", "--tokenizer", "t.json", "-o", "text"], CANT_CREATE, "it would replace a file that has no header of tokens"),
    (["text", "--tokenizer", "t.json", "-o", "pipe"], CANT_CREATE, "-o names a file"),
    (["text", "--tokenizer", "t.json", "-o", "-"], CANT_CREATE, "-o names a file"),
])
def test_refused(folder, args, code, message):
    before = sorted(folder.iterdir())
    done = call(folder, *args)
    assert done.returncode == code and message in done.stderr, done.stderr
    assert sorted(folder.iterdir()) == before


def test_of_the_command_alone(folder):
    done = subprocess.run([MTC, "m.mt", "--tokenizer", "t.json"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == USAGE and "--tokenizer is an option of 'mtc tokens'" in done.stderr


def test_help(folder):
    done = call(folder, "--help")
    assert done.returncode == 0 and "usage: mtc tokens" in done.stdout and "--tokenizer" in done.stdout and "--batch" not in done.stdout


def test_a_text_without_ends_of_words_is_refused(folder):
    with open(folder / "long", "wb") as file:
        file.write(b"ab " * 100000)
        file.truncate(70 << 20)  # zeros
    done = call(folder, "long", "--tokenizer", "t.json", "-o", "x.bin")
    assert done.returncode == BAD_DATA and "no word ends within" in done.stderr, done.stderr
    assert not (folder / "x.bin").exists() and not list(folder.glob("*.tmp"))


def test_tokens_of_before_are_replaced(folder):
    assert call(folder, "text", "--tokenizer", "t.json", "-o", "x.bin").returncode == 0
    (folder / "text").write_text("b")
    assert call(folder, "text", "--tokenizer", "t.json", "-o", "x.bin").returncode == 0
    assert read_tokens(folder / "x.bin").tolist() == [ord("b")]
