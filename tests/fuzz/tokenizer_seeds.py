"""Seeds for tokenizer_fuzz: its first byte, files of tokenizers with each pattern and with added tokens, and a text that has it all."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

import bpe  # noqa: E402

TEXT = "The cat's\r\n hat,  it'LL be 12345 naïve 你好!\n\n\n <|end|> late".encode() + b"\xff\xc3 \xe2\x82\t"


def seeds():
    merges = bpe.learn(TEXT, 20)
    plain = bpe.Tokenizer(merges)
    yield b"\0", [json.dumps(plain.json()).encode()]
    yield b"\0", [json.dumps(bpe.Tokenizer(merges, bpe.LLAMA3, ["<|end|>", "\n <|"], ["late"], [b"naive"]).json()).encode()]
    yield b"\0", [json.dumps(bpe.Tokenizer(merges, added=["12"]).json(), ensure_ascii=False).encode()]
    lines = [f"{bpe.written(a)} {bpe.written(b)}" for a, b in merges]
    yield b"\1", [json.dumps(plain.vocabulary()).encode(), "\n".join(["#version: 0.2", *lines]).encode()]


def main(folder):
    for number, (first, files) in enumerate(seeds()):
        (folder / f"tokenizer-{number}").write_bytes(first + b"\xff".join([*files, TEXT]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
