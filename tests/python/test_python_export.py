"""model.export: the network as a file of ONNX."""

import numpy as np
import pytest

import mtc

pytestmark = pytest.mark.quick
onnx_files = pytest.importorskip("onnx_files", reason="onnx and onnxruntime are not installed")

X = np.random.default_rng(1).uniform(0, 1, (20, 6)).astype("f4")
Y = (X.sum(1) > 3).astype("i4")


@pytest.fixture(scope="module")
def network():
    with mtc.Sequential([mtc.Linear(6, 5), mtc.ReLU(), mtc.Linear(5, 2)], loss="cross_entropy", optimizer=mtc.Adam(0.1), batch=4, target="cpu",
                        seed=1) as network:
        network.fit(X, Y, epochs=2, verbose=0)
        yield network


def test_export(network, tmp_path):
    network.export(tmp_path / "n.onnx")
    model = onnx_files.onnx.load(tmp_path / "n.onnx")
    name = model.graph.input[0].name
    np.testing.assert_allclose(onnx_files.answers(model, {name: X}), network.predict_proba(X), rtol=1e-5, atol=1e-6)
    network.export(tmp_path / "n.onnx")  # its own kind is replaced


def test_what_is_refused(network, tmp_path):
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(mtc.FileError, match="would replace a file that is no network"):
        network.export(tmp_path / "notes")
    with pytest.raises(mtc.UsageError, match="the name promises a pickle of PyTorch; what can be written is .onnx"):
        network.export(tmp_path / "n.pt")
    with pytest.raises(mtc.FileError, match="there is no folder"):
        network.export(tmp_path / "none" / "n.onnx")
    with pytest.raises(mtc.FileError, match="Is a directory"):
        network.export(tmp_path)
    assert (tmp_path / "notes").read_text() == "mine"


def test_no_number(network, tmp_path):
    """As a training that has diverged leaves it; params and files take none."""
    kept, none = network.params["linear1.bias"].numpy(), np.full(5, np.nan, "f4")
    network.session.set("linear1.bias", none)
    with pytest.raises(mtc.DataError, match=r"the network is not exported, for 'linear1.bias' is not finite: element \[0\] is NaN"):
        network.export(tmp_path / "nan.onnx")
    network.params["linear1.bias"][...] = kept
    assert not (tmp_path / "nan.onnx").exists()
