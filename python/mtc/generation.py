"""Text from a language model, token by token."""

from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, Any, Iterator

from .abi import Generation, Sampling
from .errors import UsageError
from .spec import Number, whole

if TYPE_CHECKING:
    from .library import Session

USUAL = {"max_tokens": "tokens", "max_new_tokens": "tokens", "num_beams": "beams", "n": "batch", "num_samples": "batch",
         "num_return_sequences": "batch", "stop_strings": "stop", "repeat_penalty": "repetition_penalty"}
"""What other libraries call arguments of ``generate``."""


def _bytes_of(text: Any, what: str) -> bytes:
    if not isinstance(text, str):
        raise UsageError(f"{what} is a text, such as 'ROMEO:' or '17 4', not {text!r}")
    if "\0" in text:
        raise UsageError(f"{what} has a character of code 0, which no {what} can have")
    return text.encode("utf-8", errors="surrogateescape")


def generation_of(prompt: Any, tokens: Any, *, stop: Any, beams: Any, batch: Any, top_k: Any, seed: int,
                  **numbers: Any) -> Generation:
    """What is asked for. Raises UsageError for what are no numbers and no texts; the library knows ranges."""
    any_number = Number()
    sampling = Sampling(top_k=whole(top_k, "top_k", 0), seed=seed,
                        **{name: any_number(value, name) for name, value in numbers.items()})
    stops = [_bytes_of(each, "stop") for each in (stop if isinstance(stop, (list, tuple)) else (stop,))]
    return Generation.of(sampling, _bytes_of(prompt, "prompt"), whole(tokens, "tokens", 1), whole(batch, "batch", 1),
                         whole(beams, "beams", 1), stops)


def pieces(session: Session, lock: threading.RLock, how: Generation) -> Iterator[tuple[int, str]]:
    """Parts of the texts, each with the number of its text: the prompt, and what follows. A character that the last token cut
    off is left out; what is no UTF-8 is U+FFFD. Between two parts the model may do anything."""
    with lock:
        generator = session.generator(how)
    try:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        at = 0
        while True:
            with lock:
                text, piece = generator.next()
            if text < 0:
                return
            if text != at:
                decoder.reset()
                at = text
            part = decoder.decode(piece)
            if part:
                yield text, part
    finally:
        generator.close()


def texts(session: Session, lock: threading.RLock, how: Generation) -> list[str]:
    """All texts, whole. Of beams there may be fewer than asked for."""
    parts: dict[int, list[str]] = {}
    for text, part in pieces(session, lock, how):
        parts.setdefault(text, []).append(part)
    return ["".join(each) for each in parts.values()]
