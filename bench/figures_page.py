"""docs/figures.md and its picture, from bench/figures.json alone."""

from curves import svg
from measured import table
from vision_page import PEERS, error_table, tables

GPU_PEERS = "PyTorch's are eager kernels in a CUDA graph"


def microseconds(value):
    if value is None:
        return ""
    return f"{value / 1e6:,.2f} s" if value >= 1e6 else f"{value / 1e3:,.2f} ms" if value >= 1e3 else f"{value:,.1f} us"


def megabytes(value):
    return "" if value is None else f"{value / 1e6:,.0f} MB"


def ratio(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def about(part):
    """Where and with what a part was measured."""
    machine = part["machine"]
    processor = f" and {machine['threads']} threads of {machine['cpu']}" if "cpu" in machine else ""
    torch = f"PyTorch {machine['torch']}, NumPy {machine['numpy']}" if "torch" in machine else "without PyTorch"
    return f"On {machine['gpu']} (card, driver){processor}; {torch}."


# ---- products ----

def teraflops(size, us):
    return "" if us is None else f"{2e-6 * size ** 3 / us:,.1f}" if us else ""


PRODUCTS = [("naive", "naive_us"), ("naive, coalesced", "coalesced_us"), ("tiled", "shared_tile_us"), ("mtc's kernel", "kernel_us"),
            ("a program of mtc", "program_us"), ("cuBLAS", "cublas_us"), ("torch.mm", "torch_us")]
CPU_PRODUCTS = [("naive, one core", "cpu_naive_us"), ("a program of mtc", "cpu_program_us"), ("NumPy's BLAS", "cpu_numpy_us"),
                ("torch.mm", "cpu_torch_us")]


def product_table(rows, columns, with_speed):
    titles = ["N", *(name for name, _ in columns), *(["TFLOP/s: mtc's kernel, cuBLAS", "tile"] if with_speed else [])]

    def line(row):
        speeds = [f"{teraflops(row['size'], row['kernel_us'])}, {teraflops(row['size'], row['cublas_us'])}", row["tile"]]
        return [str(row["size"]), *(microseconds(row.get(key)) for _, key in columns), *(speeds if with_speed else [])]
    return table(titles, map(line, rows))


def products(part):
    rows = part["rows"]
    parts_of = ", ".join(f"{row['size']}: {row['cpu_naive_rows']}" for row in rows if row["cpu_naive_rows"] < row["size"])
    return ["Two N x N matrices of f32, strict fp32. `naive` is a thread for each output, neighbours in a column or, coalesced, in a row;",
            "`tiled` has tiles of 32 x 32 in shared memory; mtc's kernel is the best tile of `bench/matmul_squares.inc`; a program of mtc",
            "is a whole forward pass of `linear` as it is compiled, launch and all; torch.mm is a CUDA graph.",
            *product_table(rows, PRODUCTS, True),
            "On the processor. Of the naive product (`bench/naive.c`, three loops)"
            + (f" some rows were timed and the rest reckoned: {parts_of}." if parts_of else " all rows were timed."),
            *product_table(rows, CPU_PRODUCTS, False)]


# ---- element-wise kernels and reductions ----

def element_line(row):
    program, torch = row["program_us"], row.get("torch_us")
    rate = f"{1e-3 * row['bytes'] / program:,.0f}"
    return [f"`{row['operation']}`", microseconds(program), rate, microseconds(torch), microseconds(row["cpu_program_us"]),
            microseconds(row.get("cpu_torch_us")), ratio(row["cpu_program_us"] / program)]


def elements(part, copies):
    on_device = next((row for row in copies["rows"] if row["way"] == "on the device"), None) if copies else None
    memory = (f"A copy of as many numbers on the device moves {1e-3 * 2 * 4 * 4096 ** 2 / on_device['us']:,.0f} GB/s."
              if on_device else "")
    return ["Of 4096 x 4096 numbers, row by row: a program of mtc whose prediction is that expression and nothing else, the whole pass.",
            f"GB/s counts what is read and written once. {memory}",
            *table(["", "mtc", "GB/s", "PyTorch", "mtc, CPU", "PyTorch, CPU", "CPU / GPU, mtc"], map(element_line, part["rows"]))]


# ---- attention ----

def attention_line(row):
    def speed(name):
        value = row.get(name)
        return f"{value[0]}, {value[1]}" if isinstance(value, list) else str(value or "")
    shape = f"{row['batch']} x {row['length']}, {row['queries']} heads ({row['keys']} of keys) of {row['size']}"
    return [shape + (", causal" if row["causal"] else ""), *(speed(name) for name in ("ours", "plain", "flash", "cudnn"))]


def attention(part):
    return ["TFLOP/s in bf16, forward, and forward and backward together. `plain`: products and a softmax in PyTorch, all scores in memory;",
            "flash and cuDNN: PyTorch's `scaled_dot_product_attention`.",
            *table(["examples x positions", "mtc", "plain", "flash", "cuDNN"], map(attention_line, part["rows"]))]


# ---- ResNet-18 ----

def by_target(rows, key):
    found = {}
    for row in rows:
        found.setdefault(row[key], {})[row["target"]] = row
    return found


FORWARD = ["batch", "mtc", "images/s", "memory", "PyTorch", "images/s", "memory", "mtc, CPU", "PyTorch, CPU", "CPU / GPU, mtc"]


def images_per_second(batch, us):
    return "" if us is None else f"{1e6 * batch / us:,.0f}"


def forward_line(batch, row, cpu):
    theirs = row.get("torch_us")
    return [str(batch), microseconds(row["us"]), images_per_second(batch, row["us"]), megabytes(row["planned_bytes"]),
            microseconds(theirs), images_per_second(batch, theirs), megabytes(row.get("torch_bytes")), microseconds(cpu["us"]),
            microseconds(cpu.get("torch_us")), ratio(cpu["us"] / row["us"])]


def forward(part):
    found = by_target(part["rows"], "batch")
    tables = [line for precision in ("fp32", "bf16") for line in
              (f"In {precision} (the processor's: fp32):",
               *table(FORWARD, [forward_line(batch, rows[precision], rows["cpu"]) for batch, rows in found.items()]))]
    return ["224 x 224, 1000 classes, channels last. Memory: what mtc's plan allocates, weights with it; PyTorch's peak of a pass.", "",
            *tables, "![images per second by batch](figures.svg)", ""]


def curves(part):
    found = {}
    for row in part["rows"]:
        for who, key in (("mtc", "us"), ("PyTorch", "torch_us")):
            if row.get(key):
                found.setdefault((who, row["target"]), []).append((row["batch"], 1e6 * row["batch"] / row[key]))
    return found


LAYERS = ["the first convolution and pool, the head", *(f"layer{stage}.{block}" for stage in range(1, 5) for block in range(2))]


def layer_times(found, target, key):
    """Of each prefix what it adds to the one before."""
    times = [found[blocks][target].get(key) for blocks in sorted(found)]
    return [None if b is None else b - a for a, b in zip([0, *times], times)] if None not in times else [None] * len(times)


def added(value):
    """What is less than nothing is the noise of the two times that it is the difference of."""
    return "in the noise" if value is not None and value <= 0 else microseconds(value)


def layers(part):
    found = by_target(part["rows"], "blocks")
    columns = [layer_times(found, target, key) for target in ("fp32", "bf16", "cpu") for key in ("us", "torch_us")]
    rows = [[name, *(added(column[i]) for column in columns), ratio(columns[4][i] / columns[0][i])]
            for i, name in enumerate(LAYERS)]
    whole = ["whole", *("" if None in column else microseconds(sum(column)) for column in columns),
             ratio(sum(columns[4]) / sum(columns[0]))]
    return ["Of 64 images: the time of the network up to a block less that of the network up to the block before.",
            *table(["", "mtc, fp32", "PyTorch, fp32", "mtc, bf16", "PyTorch, bf16", "mtc, CPU", "PyTorch, CPU", "CPU / GPU, mtc fp32"],
                   [*rows, whole])]


# ---- trainings, copies ----

def training_line(row):
    def figure(value):
        return "" if value is None else f"{100 * value:.2f}%" if row["model"] == "cnn" else f"{value:.1f}"

    def seconds(value):
        return "" if value is None else f"{value:.2f} s"
    where = "CPU" if row["target"] == "cpu" else "GPU"
    return [f"{row['model']}.mt, {where}", figure(row["figure"]), seconds(row["train_s"]), seconds(row["process_s"]),
            megabytes(row["device_bytes"]), figure(row.get("torch_figure")), seconds(row.get("torch_train_s")),
            megabytes(row.get("torch_bytes"))]


def training(part):
    return ["Ten epochs in fp32, with the test data evaluated after each: accuracy of the digits, mean absolute error of the sales. PyTorch",
            "trains the same layers with the same optimizer on the same data, on the device as f32; a step is one CUDA graph that gathers",
            "its batch. Memory is of the training, with its data.",
            *table(["", "mtc", "training", "whole process", "memory", "PyTorch", "training", "memory"], map(training_line, part["rows"]))]


def copy_line(row):
    size = 4 * 4096 ** 2 * (2 if row["way"] == "on the device" else 1)
    return [row["way"], microseconds(row["us"]), f"{1e-3 * size / row['us']:,.1f}", microseconds(row.get("torch_us"))]


def copies(part):
    return ["A matrix of 4096 x 4096 numbers of f32, 67 MB; on the device, what is read and written counts.",
            *table(["", "cudaMemcpy", "GB/s", "PyTorch"], map(copy_line, part["rows"]))]


# ---- vision models ----

def vision(part):
    return [PEERS, "", *tables(part["rows"])]


def errors(part):
    return ["Compiled convolutions of odd sizes and all kinds beside float64 (the cases of `tests/kernels/test_conv.py`): of the outputs, of the",
            "image's gradient and of the filters' the largest difference, by the largest number.",
            *error_table(part["rows"])]


# ---- the page ----

SECTIONS = [("products", "Products of matrices", products), ("elements", "Element-wise kernels and reductions", elements),
            ("attention", "Attention", attention), ("forward", "ResNet-18, forward", forward),
            ("layers", "ResNet-18, layer by layer", layers), ("training", "Ten epochs", training),
            ("copies", "Copies to the device and back", copies), ("vision", "Vision models in every precision", vision),
            ("errors", "Convolutions beside float64", errors)]
OF_SCRIPTS = {name: f"bench/{name} --results bench/figures.json" for name in ("vision", "errors")}  # the others: bench/figures


def page(results):
    lines = ["# Figures", "", "Each table is of one command, which measures mtc and PyTorch in the same run; `bench/figures` alone measures all of them,",
             f"`bench/figures page` writes this page from [bench/figures.json](../bench/figures.json). {GPU_PEERS}."]
    for name, title, text in SECTIONS:
        if name in results:
            part = results[name]
            lines += ["", f"## {title}", "", f"`{OF_SCRIPTS.get(name, f'bench/figures {name}')}`. {about(part)}", "",
                      *(text(part, results.get("copies")) if name == "elements" else text(part))]
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def write_page(results, folder):
    (folder / "figures.md").write_text(page(results))
    if "forward" in results:
        (folder / "figures.svg").write_text(svg(curves(results["forward"]), "ResNet-18, forward: images per second by batch"))
