"""The tables of bench/vision and bench/errors, from the rows that they measured: for their own pages and for docs/figures.md."""

from measured import megabytes, number, ratio, table

PEERS = ("PyTorch in the same run, channels last, the best of its modes: eager kernels in a CUDA graph, torch.compile, and for "
         "trainings torch.compile in a CUDA graph.")


RESULTS = "outputs", "image", "filters"


def milliseconds(us):
    return "" if us is None else f"{1e-3 * us:,.3f}"


def images_per_second(row, us):
    return number(1e6 * row["batch"] / us if us else None)


def peers_mode(row):
    return row.get("torch_mode", "").removeprefix("PyTorch ")


def cnn_line(row):
    return [f"{row['us']:.1f}", f"{row['torch_us']:.1f}" if row.get("torch_us") else "", ratio(row.get("torch_us"), row["us"])]


def cnn(rows):
    return ["A training step of cnn.mt, 64 digits, fp32, in us:", *table(["mtc", "PyTorch", "mtc / PyTorch"], map(cnn_line, rows))]


def forward_line(row):
    theirs, error = row.get("torch_us"), row.get("difference")
    return [str(row["batch"]), row["precision"], images_per_second(row, row["us"]), images_per_second(row, theirs),
            peers_mode(row), ratio(theirs, row["us"]), milliseconds(row["us"]), "" if error is None else f"{error:.1e}"]


def forward(rows):
    return ["resnet18.mt, forward, images per second; `tf32x3` beside PyTorch's fp32. The difference is that of the class probabilities for",
            "four random images from those of the CPU's program, with the same random weights: the largest of the images', relative in the",
            "Euclidean norm.",
            *table(["batch", "precision", "mtc", "PyTorch", "its mode", "mtc / PyTorch", "ms a batch", "difference"], map(forward_line, rows))]


def train_line(row):
    theirs = row.get("torch_us")
    return [row["model"], str(row["batch"]), row["precision"], images_per_second(row, row["us"]), images_per_second(row, theirs),
            peers_mode(row), ratio(theirs, row["us"]), milliseconds(row["us"]), megabytes(row.get("planned_bytes")), megabytes(row.get("device_bytes")),
            megabytes(row.get("torch_bytes"))]


def train(rows):
    return ["Training steps, images per second; resnet50, inverted and unet128 are models of `bench/`:",
            *table(["model", "batch", "precision", "mtc", "PyTorch", "its mode", "mtc / PyTorch", "ms a step", "planned memory",
                    "measured", "PyTorch's peak"], map(train_line, rows))]


def product_line(row):
    return [row["shape"], f"{row['us']:.1f}", f"{row['cublas_us']:.1f}", f"{row['cublas_us'] / row['us']:.1%}", row["tile"]]


def products(rows):
    return ["Products in strict fp32, the best tile of `bench/matmul_limits.inc`, in us (N, T: how an operand lies):",
            *table(["product", "mtc's kernel", "cuBLAS", "cuBLAS / mtc", "tile"], map(product_line, rows))]


def tables(rows):
    works = {"cnn": cnn, "forward": forward, "train": train, "products": products}
    found = {work: [row for row in rows if row["work"] == work] for work in works}
    return [line for work, text in works.items() if found[work] for line in text(found[work])]


# ---- errors ----

def by_case(rows):
    found = {}
    for row in rows:
        found.setdefault(row["case"], {})[row["precision"]] = row
    return found


def largest(row, precision):
    return max(row[precision][result] for result in RESULTS)


def case_line(precisions, case, row):
    batch, (channels, height, width), (outputs, kernel), *others = next(iter(row.values()))["sizes"]
    *axes, groups = others
    return [case, f"{batch} x {channels} x {height} x {width} to {outputs}", f"{kernel[0]} x {kernel[1]}",
            *(f"{a}, {b}" if a != b else str(a) for a, b in axes), str(groups),
            *(", ".join(f"{row[precision][result]:.1e}" for result in RESULTS) for precision in precisions)]


def error_table(rows):
    found = by_case(rows)
    precisions = list(next(iter(found.values())))
    worst = [f"{max(largest(row, precision) for row in found.values()):.1e}" for precision in precisions]
    return table(["case", "sizes", "taps", "stride", "padding", "dilation", "groups", *precisions],
                 [*(case_line(precisions, case, row) for case, row in found.items()), ["largest", *[""] * 6, *worst]])
