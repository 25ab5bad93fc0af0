"""ONNX files in tests: what mtc writes of a model, with weights put in, and what ONNX Runtime computes with it."""

import subprocess

import numpy as np
import pytest
from conftest import MTC

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the package onnxruntime is not installed")


def network(path, made, *flags):
    """The file that --emit=onnx writes of a model, in which the weights have no numbers yet."""
    run = subprocess.run([MTC, path, "--emit=onnx", "-o", made, *flags], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return onnx.load(made)


def with_weights(model, weights):
    for initializer in model.graph.initializer:
        if initializer.name in weights:
            assert tuple(initializer.dims) == weights[initializer.name].shape and not initializer.raw_data
            initializer.raw_data = weights[initializer.name].astype("<f4").tobytes()
    return model


def answers(model, fields):
    """Of a file that ONNX's own checker takes; fields by their names, others than its inputs among them."""
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {value.name: np.ascontiguousarray(fields[value.name]) for value in session.get_inputs()})[0]
