"""What the compiler and its programs say of their flags, in the words of Python: arguments of functions and methods."""

from __future__ import annotations

import re
from typing import Sequence

Words = Sequence[tuple[str, str]]  # a regular expression and what stands for it

_MESSAGE = re.compile(r"^(?:mtc|.+:\d+:\d+): (?:error|warning|note): .*$", re.MULTILINE)
PRECISIONS = ("fp32", "tf32", "tf32x3", "bf16", "fp16", "fp8")  # of training
_OF_MTC: Words = (
    (r"--set (\w+)", r"\1"),
    (rf"--(target|arch|precision|schedule) (cpu|cuda|native|sm_\w+|{'|'.join(PRECISIONS)}|graph|persistent)\b", r"\1='\2'"),
    (r"--(target|arch|batch|precision|schedule|recompute|x)\b", r"\1"),
)
_OF_SUMMARY: Words = (
    (r", fixed when compiling \(mtc --set (\w+)=\.\.\.\)$", r", fixed when compiling: mtc.compile(..., \1=...)"),
    (r", a flag of the program \(--(\w+)\)$", r", changed by set(\1=...)"),
)
_OF_PROGRAM: Words = (
    (r"mtc .+ --target cpu --shared$", "mtc.compile(..., target='cpu')"),
    (r"mtc .+ --arch (sm_\w+) --shared$", r"mtc.compile(..., arch='\1')"),
    (r"--data FOLDER", "data='FOLDER'"),
    (r"(plateau_lr needs data to evaluate: there are neither validation nor test data)$",
     r"\1; fit(validation_split=0.1), or early_stopping=True of an estimator, holds some back"),
    (r"the weights were saved without them$", "call fit or load first, which take them from the "
                                              "model's own data or a checkpoint of it"),
    # Of several processes.
    (r"--rank-timeout SECONDS waits longer, --resume goes on from the last checkpoint", "fit(..., resume=FILE) goes on from a checkpoint"),
    (r"--resume goes on from the last checkpoint", "fit(..., resume=FILE) goes on from a checkpoint"),
    (r"--sums (peers|nccl|host)", r"sums='\1'"),
    (r"(does not hold the weights of this model: .* different)$", r"\1; load(FILE, partial=True) takes those that fit"),
    # What only programs do.
    (r"\n  --bad-rows skip leaves out rows that are wrong", ""),
    (r"; --bad-rows skip leaves such files out", ""),
    (r", or with predict --resize", ""),
)
_OF_WARNINGS: Words = (
    (r"mtc --batch N makes a program of smaller ones", "batch=N makes a model of smaller ones"),
    (r"eval --split train does", "evaluate does"),
    (r"\(--(\w+) is ([^)]+)\)", r"(\1 is \2)"),
    (r"; --overfit-batch tries what the model can learn", "; a fit of a few examples tries what the model can learn"),
)
_OF_NETWORKS: Words = (
    (r"in the model, normalize\(\w+\) is a target near 0, and denormalize\(.*\) brings the prediction y back",
     "with normalize_target=True the network learns numbers near 0, and predicts in y's own scale"),
    (r"in the model, \w+ / 255 is from 0 to 1, where it is read and where it is compared",
     "mtc.Rescaling(1 / 255) as the first layer makes numbers from 0 to 1 of them"),
    (r"in the model, normalize\(\w+\) brings them there", "mtc.Normalize() as the first layer brings them there"),
)


def _said(text: str, words: Words) -> str:
    for flag, argument in words:
        text = re.sub(flag, argument, text, flags=re.MULTILINE)
    return text


def of_mtc(text: str) -> str:
    """What the compiler said, errors or warnings; the lines of the model that it shows stay as they are."""
    return _MESSAGE.sub(lambda line: _said(line[0], _OF_MTC), text)


def of_summary(text: str) -> str:
    """What ``mtc --summary`` prints."""
    return _said(text, _OF_SUMMARY)


def of_program(text: str) -> str:
    """The fault of a compiled model."""
    return _said(text, _OF_PROGRAM)


def of_warning(text: str) -> str:
    """What a program warns of while it trains."""
    return _said(text, _OF_WARNINGS)


def of_network(text: str) -> str:
    """The same, where the model's text is written from layers."""
    return _said(text, _OF_NETWORKS)
