"""Precision, splitting and fusion of convolutions: the same numbers before and after, and what is stored of them."""

import re

import numpy as np
import pytest
from conftest import run_mtc
from evaluator import evaluate, parse, to_bf16
from library import Library
from random_port import permutation, shuffle_key
from test_images import leaves_of, model, shown

LINES = ["a = relu(batch_norm(conv2d(image, 16, 3, padding = 1, bias = false)))",
         "b = batch_norm(conv2d(a, 32, 3, padding = 1, stride = 2, bias = false))",
         "c = relu(b + conv2d(a, 32, 1, stride = 2))",
         "h = linear(relu(linear(flatten(max_pool(c, 2)), 32)), 3)"]
IMAGE, BATCH = "f32[16, 8, 8]", 64  # 4096 pixels: sums over them are split


@pytest.fixture
def emit(tmp_path):
    """emit(stage, *flags): what mtc prints of the model above."""
    path = tmp_path / "case.mt"
    path.write_text(model(LINES, image=IMAGE, batch=BATCH))

    def run(stage, *flags):
        done = run_mtc(f"--emit={stage}", *flags, path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def step(text):
    graph = parse(text)["train"]
    return evaluate(graph, leaves_of(graph), rows=BATCH)


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_split_keeps_the_numbers(emit, target, precision):
    flags = ["--target", target, "--precision", precision]
    before, after = step(emit("simple", *flags)), step(emit("split", *flags))
    assert len(after.values) > len(before.values)
    assert after.reports["loss"] == pytest.approx(before.reports["loss"], rel=1e-9)
    for name, value in before.assigned.items():
        # A number at the edge between two of bf16 may fall to the other side.
        tolerance = 1e-9 if precision == "fp32" else 1e-2 * np.abs(value).max()
        np.testing.assert_allclose(after.assigned[name], value, rtol=1e-9, atol=tolerance, err_msg=name)


def test_slices_are_summed_once(tmp_path):
    """The norm of gradients is read from their sums: of a filter and of a matrix, no slice is loaded by a second kernel."""
    path = tmp_path / "clipped.mt"
    path.write_text(model(LINES, image=IMAGE, batch=2048).replace("  batch ", "  clip_norm = 1\n  batch "))
    fused = run_mtc("--emit=fused", "--target", "cuda", path).stdout.partition("\neval:")[0]
    slices = re.findall(r"contract \w+_slices\n.*\n.*\n    stores (%\d+)", fused)
    loaded = re.findall(r"%\d+", " ".join(re.findall(r"    loads (.*)", fused)))
    assert len(slices) >= 4 and [loaded.count(number) for number in slices] == [1] * len(slices)


def test_bf16_is_close_to_fp32(emit):
    exact, rounded = step(emit("simple")), step(emit("simple", "--precision", "bf16"))
    assert rounded.reports["loss"] == pytest.approx(exact.reports["loss"], rel=0.05)
    for name, value in exact.assigned.items():
        error = np.linalg.norm(rounded.assigned[name] - value) / (np.linalg.norm(value) + 1e-9)
        assert error < 0.2, name


SELECTED = {"a pool": ["a = max_pool(relu(conv2d(image, 16, 3, padding = 1)), 2)", "h = linear(flatten(conv2d(a, 16, 3)), 3)"],
            "an axis": ["a = relu(linear(flatten(image), 64))", "b = max(reshape(tanh(a), [32, 2]), axis = 1)", "h = linear(linear(b, 32), 3)"],
            "a pool of a pool": ["a = max_pool(tanh(conv2d(image, 16, 3, padding = 1)), 2)", "b = max_pool(a, 2)",
                                 "h = linear(flatten(conv2d(b, 16, 2)), 3)"]}


@pytest.mark.parametrize("precision, bound", [("bf16", 0.1), ("fp16", 0.05)])
@pytest.mark.parametrize("lines", SELECTED.values(), ids=SELECTED)
def test_gradients_find_the_largest_where_it_is_rounded(lines, precision, bound, tmp_path):
    """The largest of some values goes into a product, so that it is rounded: who gets its gradient is found among values that are
    rounded too. With one channel, the first product is thin, and its result would not be."""
    path = tmp_path / "case.mt"
    path.write_text(model(lines, image="f32[1, 8, 8]", batch=BATCH))
    texts = [run_mtc("--emit=simple", "--precision", name, path).stdout for name in ("fp32", precision)]
    exact, rounded = (step(text).assigned for text in texts)
    gradients = [name for name in exact if name.endswith(".momentum")]
    assert len(gradients) >= 4
    for name in gradients:
        error = np.linalg.norm(rounded[name] - exact[name]) / np.linalg.norm(exact[name])
        assert error < bound, (name, error)


def test_rounding_to_bf16():
    """Halves go to the even neighbour; 8 bits are kept."""
    x = np.array([1, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-8 + 2**-20, -3.1415927, 0])
    assert to_bf16(x).tolist() == [1, 1, 1 + 2**-6, 1 + 2**-7, -3.140625, 0]


def test_only_operands_and_results_are_rounded(emit):
    """Products read bf16 on both sides or on none, and what bf16 numbers are made of is f32."""
    graph = parse(emit("simple", "--precision", "bf16"))["train"]
    products = [node for node in graph if node.op == "matmul"]
    kinds = {tuple(graph[k].dtype for k in node.inputs) for node in products}
    assert kinds <= {("bf16", "bf16"), ("f32", "f32")} and ("bf16", "bf16") in kinds
    assert all(node.dtype == "f32" for node in products)
    assert {node.op for node in graph if node.dtype == "bf16"} <= {"to_bf16", "reshape", "transpose", "window", "pad", "slice"}


def test_tf32_is_rounded_where_it_is_made(emit):
    """On a GPU, what products of an extent of 16 and more alone read is stored rounded; what others read too, and weights, where it pays.
    Nobody else reads rounded numbers, and all else has the numbers that it had."""
    text = emit("split", "--target", "cuda", "--arch", "sm_90a", "--precision", "tf32")
    graph = parse(text)["train"]
    views = ("reshape", "transpose", "window", "pad", "slice")

    def base(k):
        return base(graph[k].inputs[0]) if graph[k].op in views else graph[k]

    def large(node):
        return node.op == "matmul" and min(*node.shape[-2:], *graph[node.inputs[0]].shape[-2:]) >= 16

    read_by_others = {base(k).id for node in graph if node.op not in views and not large(node) for k in node.inputs}
    operands = [base(k) for node in graph if large(node) for k in node.inputs]
    rounded = [node for node in operands if node.op == "to_tf32"]
    assert len(rounded) >= 9 and not {node.id for node in rounded} & read_by_others
    assert all(node.op == "weight" or node.id in read_by_others for node in operands if node.op != "to_tf32")
    exact = step(emit("split", "--target", "cuda"))
    assert step(text).reports["loss"] == pytest.approx(exact.reports["loss"], rel=1e-3)


def test_a_weight_lies_along_k_for_groups_of_warps(tmp_path):
    """Its rounded copy for the gradient of what it is multiplied with: with others' instructions it lies as it does."""
    path = tmp_path / "wide.mt"
    path.write_text(model(["a = relu(linear(flatten(image), 512))", "h = linear(relu(linear(a, 512)), 3)"], image=IMAGE, batch=4096))

    def products_of_copies(arch):
        graph = parse(run_mtc("--emit=split", "--target", "cuda", "--arch", arch, "--precision", "tf32", path).stdout)["train"]
        products = [node for node in graph if node.op == "matmul" and not node.attrs.get("ta")]
        return [bool(node.attrs.get("tb")) for node in products if graph[node.inputs[1]].op == "to_tf32"]

    assert products_of_copies("sm_90a") == [True, True, True] and not products_of_copies("sm_80")[-1]


@pytest.mark.parametrize("flags", [["--target", "cpu", "--precision", "tf32"], ["--target", "cuda"]])
def test_nothing_else_is_rounded_to_tf32(emit, flags):
    assert "to_tf32" not in emit("split", *flags)


def test_convolutions_read_images_where_they_lie(emit):
    """Forward and gradients: windows of images and filters seen from their outputs, no matrix of windows in memory."""
    fused = emit("fused", "--precision", "bf16").partition("\neval:")[0]
    assert fused.count(", windows") >= 5 and ", filters" in fused
    stored = re.findall(r"(?:bf16|f32)\[(\d+(?:, \d+)*)\]", emit("plan", "--precision", "bf16"))
    assert max(np.prod([int(d) for d in dims.split(", ")]) for dims in stored) <= BATCH * 8 * 8 * 16 * 2


def test_statistics_are_summed_in_the_convolution(emit, tmp_path):
    """Of the first norm, forward and backward; the second has few pixels. By tiles of 128 rows, where each multiprocessor has one."""
    fused = emit("fused", "--precision", "bf16", "--target", "cuda")
    assert fused.count("adds up each 64 rows") == 2
    path = tmp_path / "many.mt"
    path.write_text(model(LINES, image=IMAGE, batch=16 * BATCH))
    many = run_mtc("--emit=fused", "--precision", "bf16", "--target", "cuda", path).stdout
    assert many.count("adds up each 128 rows") >= 2 and "adds up each 64 rows" not in many
    assert "adds up" not in emit("fused", "--precision", "bf16", "--target", "cpu")


def training_of(model, *flags):
    """Kernels of its step on a GPU: how many tiles each has, and what the schedule says of them."""
    schedule = run_mtc("--emit=schedule", "--arch", "sm_90a", *flags, f"models/{model}.mt").stdout.partition("\neval:")[0]
    return {name: (int(tiles), dealt) for name, tiles, dealt in re.findall(r"^    (\w+) +(\d+) tiles .* bytes  (.*)", schedule, re.M)}


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_small_products_have_a_tile_for_each_multiprocessor(precision):
    """Of 132, those of a phase with others too, and those whose tiles add up rows of their own."""
    kernels = training_of("char_gpt", "--precision", precision)
    inputs = [tiles for name, (tiles, _) in kernels.items() if re.fullmatch(r"d_(h_\d_)?ln_\w|d_h_\d_mlp_c_fc", name)]
    assert len(inputs) == 7 and min(inputs) >= 128, inputs


def test_rows_of_a_small_head_are_half_a_warps():
    """The dots of its 16 numbers: the other half would have none."""
    wide = training_of("char_gpt", "--set", "width=192", "--set", "heads=12")
    assert wide["d_h_1_attn_c_attn_dots"][1].endswith("98304 rows, half a warp each")


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16"])
def test_rows_follow_the_tile_that_they_are_made_of(precision):
    """Norms, their gradients, the dots of attention's; where tiles have pieces of rows, nothing does."""
    kernels = training_of("char_gpt", "--precision", precision)
    behind = {name: dealt.rpartition("behind ")[2] for name, (_, dealt) in kernels.items() if "behind" in dealt}
    assert behind["h_0_ln_2"] == "h_0_h" and behind["ln_f"] == "h_1" and behind["d_h_1_h"] == "d_h_1_ln_2"
    assert behind["d_h_1_attn_c_attn_dots"].startswith("d_h_1_attn_") and len(behind) == 11
    assert kernels["h_0_ln_2"][1].endswith("8192 rows, 4 threads each, behind h_0_h")
    wide = training_of("char_gpt", "--precision", precision, "--set", "width=384", "--set", "heads=12")
    assert not any("behind" in dealt for _, dealt in wide.values())


def test_activations_are_stored_in_two_bytes(emit):
    """Of what has as many elements as an activation, only the image and gradients that products just made are f32."""
    plan = emit("plan", "--precision", "bf16").partition("train: values")[2].partition("eval: values")[0]
    large = re.findall(r"^ +\d+ +(\d+)  (f32|bf16)\[64, 8, 8, 16\] +(\S+)", plan, re.M)
    assert sum(kind == "bf16" for _, kind, _ in large) >= 3
    assert sum(kind == "f32" for _, kind, _ in large) <= 1


@pytest.mark.parametrize("precision, tolerance", [("fp32", 2e-4), ("bf16", 2e-2)])
def test_a_compiled_step(precision, tolerance, emit, tmp_path):
    """The program on the processor against the graph, roundings included."""
    graph = parse(emit("grad" if precision == "fp32" else "simple", "--precision", precision))["train"]
    leaves = leaves_of(graph)
    path = tmp_path / "library.so"
    made = run_mtc(tmp_path / "case.mt", "--shared", "-o", path, "--target", "cpu", "--precision", precision)
    assert made.returncode == 0, made.stderr
    library = Library(path, np.float32)
    data = {name: leaves[name].astype(np.float32) for name in ("image", "probe")}
    library.set_data(list(data.values()))
    for name, value in leaves.items():
        if name not in data:
            library.set(name, shown(value.astype(np.float32)))
    order = permutation(shuffle_key(1, 0), BATCH)
    result = evaluate(graph, leaves | {name: values[order] for name, values in data.items()}, rows=BATCH)
    assert library.train(1, 1)[0, 0] == pytest.approx(result.reports["loss"], rel=tolerance)
    for name, value in result.assigned.items():
        expected = shown(value)
        scale = np.abs(expected).max() + 1e-3
        np.testing.assert_allclose(library.get(name, expected.shape), expected, atol=tolerance * scale, rtol=0, err_msg=name)
    library.close()


@pytest.mark.parametrize("value, message", [("fp61", "did you mean"), ("16", "precision is fp32, tf32, tf32x3, bf16, fp16 or fp8")])
def test_unknown_precision(value, message, tmp_path):
    path = tmp_path / "case.mt"
    path.write_text(model(LINES, image=IMAGE).replace("  batch", f"  precision = {value}\n  batch"))
    done = run_mtc("--emit=plan", path)
    assert done.returncode == 65 and message in done.stderr and "^" in done.stderr
