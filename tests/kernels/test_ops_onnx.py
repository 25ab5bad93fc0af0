"""Operators as ONNX has them: what mtc --emit=onnx writes of each case computes, with the case's weights, what NumPy does."""

import subprocess

import numpy as np
import pytest
from conftest import MTC
from ops_cases import CASES, Group

pytestmark = pytest.mark.quick
onnx_files = pytest.importorskip("onnx_files", reason="onnx and onnxruntime are not installed")

# ONNX's batch is as large as whoever runs the network makes it, and has no examples that fill it up.
OF_BATCHES = [case for case in CASES if "batch(" in case.y or "batch_place(" in case.y]
OTHERS = [case for case in CASES if case not in OF_BATCHES]
GROUP = 24
GROUPS = [OTHERS[i : i + GROUP] for i in range(0, len(OTHERS), GROUP)]


@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: f"{cases[0].id}..{cases[-1].id}")
def test_values(cases, tmp_path):
    group = Group(cases)
    (tmp_path / "group.mt").write_text(group.model())
    model = onnx_files.with_weights(onnx_files.network(tmp_path / "group.mt", tmp_path / "group.onnx"), group.weights)
    fields = {"pool": group.pool.array(), "label": group.pool.label.astype(np.int32)}
    found, expected = onnx_files.answers(model, fields), group.losses()
    for k, case in enumerate(cases):
        np.testing.assert_allclose(found[:, k], expected[:, k], rtol=1e-5, atol=1e-5, err_msg=case.id)


def test_any_number_of_examples(tmp_path):
    """One example, and more than a batch of the program has."""
    group = Group(OTHERS[:GROUP])
    (tmp_path / "group.mt").write_text(group.model())
    model = onnx_files.with_weights(onnx_files.network(tmp_path / "group.mt", tmp_path / "group.onnx"), group.weights)
    pool = group.pool.array()
    for rows in ([1], [0, 1, 2, 2, 1, 0, 1]):
        found = onnx_files.answers(model, {"pool": pool[rows], "label": group.pool.label[rows].astype(np.int32)})
        np.testing.assert_allclose(found, group.losses()[rows], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", OF_BATCHES, ids=lambda case: case.id)
def test_of_batches(case, tmp_path):
    (tmp_path / "group.mt").write_text(Group([case]).model())
    run = subprocess.run([MTC, tmp_path / "group.mt", "--emit=onnx"], capture_output=True, text=True)
    assert run.returncode == 65 and not run.stdout
    assert "error: this is no network of ONNX: the prediction of an example needs the other examples of its batch\n" in run.stderr
