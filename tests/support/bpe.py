"""Byte-pair encoding, written once more: slowly, from its definition. Files of tokenizers, and what their tokens are."""

import functools
import json
import re
import unicodedata

GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
LLAMA3 = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|"
          "\\s+(?!\\S)|\\s+")
SPACES = {*map(chr, range(0x9, 0xE)), *" \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000", *map(chr, range(0x2000, 0x200B))}
PRINTABLE = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
CHARACTERS = {b: chr(b) for b in PRINTABLE} | {b: chr(0x100 + i) for i, b in enumerate(b for b in range(256) if b not in PRINTABLE)}


@functools.cache
def as_ascii(char, fold):
    """A character of ASCII of the same class, which Python's patterns know: it has no \\p{L}."""
    if ord(char) < 128:
        return char
    if char == "ſ" and fold:  # the long s, which is an s in another case
        return "s"
    category = unicodedata.category(char)[0]
    return "\t" if char in SPACES else {"L": "Z", "N": "0"}.get(category, "!")


def words(pattern, data):
    """The words of bytes; what is no UTF-8 is neither letter, number nor space."""
    text = data.decode("utf-8", "surrogateescape")
    plain = "".join(as_ascii(char, pattern == LLAMA3) for char in text)
    own = pattern.replace("[^\\r\\n\\p{L}\\p{N}]", "[^\\r\\nA-Za-z0-9]").replace("[^\\s\\p{L}\\p{N}]", "[^ \\t-\\rA-Za-z0-9]")
    own = own.replace("\\p{L}", "[A-Za-z]").replace("\\p{N}", "[0-9]").replace("\\s", "[ \\t-\\r]").replace("\\S", "[^ \\t-\\r]")
    for match in re.finditer(own, plain):
        yield text[match.start():match.end()].encode("utf-8", "surrogateescape")


class Tokenizer:
    """`merges`: pairs of bytes, the soonest first; a token is a byte or what a merge makes. `added`: texts, with `late` ones."""

    def __init__(self, merges, pattern=GPT2, added=(), late=(), whole=()):
        self.merges, self.pattern, self.added, self.late, self.whole = merges, pattern, list(added), list(late), list(whole)
        self.tokens = [bytes([b]) for b in range(256)] + list(dict.fromkeys([a + b for a, b in merges] + self.whole))
        self.numbers = {token: number for number, token in enumerate(self.tokens)}
        self.added_numbers = {text.encode(): len(self.tokens) + i for i, text in enumerate(self.added + self.late)}
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.encode_word = functools.cache(self.encode_word)

    def encode_word(self, word):
        if self.whole and word in self.numbers:
            return [self.numbers[word]]
        parts = [bytes([b]) for b in word]
        while True:
            ranks = [self.ranks.get(pair, len(self.ranks)) for pair in zip(parts, parts[1:])]
            if not ranks or min(ranks) == len(self.ranks):
                return [self.numbers[part] for part in parts]
            i = ranks.index(min(ranks))
            parts[i:i + 2] = [parts[i] + parts[i + 1]]

    def encode(self, data, phase=0):
        if phase == 2:
            return [token for word in words(self.pattern, data) for token in self.encode_word(word)]
        texts = sorted(((self.added, self.late)[phase]), key=len, reverse=True)
        if not texts:
            return self.encode(data, phase + 1)
        found = re.split(b"(" + b"|".join(re.escape(text.encode()) for text in texts) + b")", data)
        return [token for i, part in enumerate(found)
                for token in ([self.added_numbers[part]] if i % 2 else self.encode(part, phase + 1))]

    def decode(self, tokens):
        known = {**dict(enumerate(self.tokens)), **{number: text for text, number in self.added_numbers.items()}}
        return b"".join(known[token] for token in tokens)

    def vocabulary(self):
        return {written(token): number for token, number in self.numbers.items()}

    def json(self):
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": self.pattern == GPT2}
        split = {"type": "Split", "pattern": {"Regex": self.pattern}, "behavior": "Isolated", "invert": False}
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "special": True}
        return {"version": "1.0", "truncation": None, "padding": None,
                "added_tokens": [{"id": self.added_numbers[text.encode()], "content": text, "normalized": text in self.late, **flags}
                                 for text in self.added + self.late],
                "normalizer": None,
                "pre_tokenizer": level if self.pattern == GPT2 else {"type": "Sequence", "pretokenizers": [split, level]},
                "post_processor": None, "decoder": {**level, "use_regex": True},
                "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                          "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": bool(self.whole),
                          "vocab": self.vocabulary(), "merges": [[written(a), written(b)] for a, b in self.merges]}}

    def save(self, path):
        path.write_text(json.dumps(self.json()))
        return path


def written(token):
    return "".join(CHARACTERS[b] for b in token)


def learn(data, count, pattern=GPT2):
    """So many merges: the pair that is met most often, of equal ones the first by its bytes, again and again."""
    texts = {}
    for word in words(pattern, data):
        texts[word] = texts.get(word, 0) + 1
    parts = {word: [bytes([b]) for b in word] for word in texts}
    merges = []
    for _ in range(count):
        met = {}
        for word, split in parts.items():
            for pair in zip(split, split[1:]):
                met[pair] = met.get(pair, 0) + texts[word]
        if not met:
            break
        best = min(met, key=lambda pair: (-met[pair], pair))
        merges.append(best)
        for word, split in parts.items():
            i = 0
            while i + 1 < len(split):
                if (split[i], split[i + 1]) == best:
                    split[i:i + 2] = [split[i] + split[i + 1]]
                i += 1
    return merges
