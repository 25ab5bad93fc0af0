"""Text from a language model, token by token."""

from __future__ import annotations

import codecs
import ctypes
from typing import TYPE_CHECKING, Any, Optional

from .errors import UsageError
from .library import Sampling
from .spec import Number, whole
from .training import deferred_interrupt

if TYPE_CHECKING:
    from .library import Session


def sampling_of(temperature: Any, top_k: Any, top_p: Any, seed: int) -> Sampling:
    """How tokens are drawn. Raises UsageError for what are no numbers; the library knows their ranges."""
    any_number = Number()
    return Sampling(any_number(temperature, "temperature"), whole(top_k, "top_k", 0), any_number(top_p, "top_p"), seed)


def _bytes_of(prompt: Any) -> bytes:
    if not isinstance(prompt, str):
        raise UsageError(f"prompt is a text, such as 'ROMEO:' or '17 4', not {prompt!r}")
    if "\0" in prompt:
        raise UsageError("prompt has a character of code 0, which no prompt can have")
    return prompt.encode("utf-8", errors="surrogateescape")


def generate(session: Session, prompt: Any, tokens: Any, sampling: Sampling) -> str:
    """The prompt and what follows. A character that the last token cut off is left out; what is no UTF-8 is U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    pieces: list[str] = []
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True

    def take(_: Optional[int], token: int, at: int, count: int) -> bool:
        pieces.append(decoder.decode(ctypes.string_at(at, count)))
        return interrupted

    with deferred_interrupt(interrupt):
        session.generate(sampling, _bytes_of(prompt), whole(tokens, "tokens", 1), take)
    if interrupted:
        raise KeyboardInterrupt
    return "".join(pieces)
