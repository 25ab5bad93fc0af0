"""Seeds for onnx_fuzz: a file for each sort of node, with a weight where it takes one, and an axis T that the harness gives a size."""

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
import onnx_file as onnx

IMAGE, ROWS = ["N", 4, 6, 6], ["N", "T", 8]
LIST = np.array
# The operator, the shape of x, further operands, attributes.
NODES = [
    ("Relu", ROWS, [], {}), ("LeakyRelu", ROWS, [], {"alpha": 0.2}), ("Add", ROWS, [LIST([1, 2, 3, 4, 5, 6, 7, 8], "f4")], {}),
    ("Mod", ROWS, [LIST(2, "f4")], {"fmod": 1}), ("Clip", ROWS, [LIST(0, "f4"), LIST(6, "f4")], {}), ("Cast", ROWS, [], {"to": 7}),
    ("ReduceSum", ROWS, [LIST([1], "i8")], {"keepdims": 0}), ("ArgMax", ROWS, [], {"axis": 2}), ("Softmax", ROWS, [], {"axis": -1}),
    ("TopK", ROWS, [LIST([2], "i8")], {}), ("CumSum", ROWS, [LIST(1, "i8")], {"reverse": 1}),
    ("MatMul", ROWS, [np.ones((8, 3), "f4")], {}), ("Gemm", ["N", 8], [np.ones((3, 8), "f4"), np.ones(3, "f4")], {"transB": 1}),
    ("Einsum", ROWS, [np.ones((8, 3), "f4")], {"equation": "nij,jk->nik"}),
    ("Conv", IMAGE, [np.ones((2, 4, 3, 3), "f4"), np.ones(2, "f4")], {"kernel_shape": [3, 3], "pads": [1, 1, 0, 0], "strides": [2, 2]}),
    ("ConvTranspose", IMAGE, [np.ones((4, 2, 2, 2), "f4")], {"strides": [2, 2]}),
    ("MaxPool", IMAGE, [], {"kernel_shape": [2, 2], "ceil_mode": 1}), ("AveragePool", IMAGE, [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    ("GlobalAveragePool", IMAGE, [], {}), ("Resize", IMAGE, [LIST([], "f4"), LIST([1, 1, 2, 2], "f4")], {"mode": "nearest"}),
    ("BatchNormalization", IMAGE, [np.ones(4, "f4")] * 4, {"epsilon": 0.1}), ("LayerNormalization", ROWS, [np.ones(8, "f4")] * 2, {}),
    ("LRN", IMAGE, [], {"size": 3}), ("DepthToSpace", IMAGE, [], {"blocksize": 2}),
    ("Reshape", ROWS, [LIST([0, -1], "i8")], {}), ("Flatten", ROWS, [], {"axis": 1}), ("Transpose", ROWS, [], {"perm": [0, 2, 1]}),
    ("Squeeze", ["N", 1, 3], [LIST([1], "i8")], {}), ("Unsqueeze", ROWS, [LIST([1, 3], "i8")], {}), ("Expand", ["N", 1, 3], [LIST([1, 4, 1], "i8")], {}),
    ("Concat", ROWS, [np.ones((1, 2, 8), "f4")], {"axis": 1}), ("Split", ROWS, [LIST([3, 5], "i8")], {"axis": 2}),
    ("Slice", ROWS, [LIST([5], "i8"), LIST([-9], "i8"), LIST([2], "i8"), LIST([-2], "i8")], {}), ("Gather", ROWS, [LIST([0, -1], "i8")], {"axis": 2}),
    ("Pad", ROWS, [LIST([0, 1, 0, 0, 2, -1], "i8")], {"mode": "reflect"}), ("Tile", ROWS, [LIST([1, 2, 1], "i8")], {}), ("Trilu", ROWS, [LIST(1, "i8")], {}),
    ("Shape", ROWS, [], {}), ("Range", [], [LIST(9, "i8"), LIST(2, "i8")], {}),
]


def main(folder):
    for number, (op, shape, more, attributes) in enumerate(NODES):
        names = [f"w{i}.weight" for i in range(len(more))]
        nodes = [onnx.node(op, ["x", *names], ["y", "z"] if op in ("TopK", "Split") else ["y"], f"/block/{op}", **attributes),
                 onnx.node("Mul", ["y", "two"], ["out"])]
        constants = [onnx.tensor(name, array) for name, array in zip(names, more)] + [onnx.tensor("two", np.float32(2))]
        (folder / f"{number:02}-{op}").write_bytes(onnx.model(nodes, [onnx.value("x", shape)], [onnx.value("out", ["N"])], constants))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
