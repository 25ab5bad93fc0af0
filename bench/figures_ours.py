"""What bench/figures measures of mtc: each part's programs, compiled side by side before anything is measured, and its rows."""

import concurrent.futures
import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from measured import MTC, OUT, ROOT, json_lines, native_architecture, progress, run, with_all_instructions

FOLDER = OUT / "figures"
CORES = len(os.sched_getaffinity(0))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": str(CORES)}

SIZES = [256, 512, 1024, 2048, 4096]
BATCHES = [1, 4, 8, 16, 32, 64]
BLOCKS = range(9)
SIDE = 4096  # of the matrices of element-wise kernels, reductions and copies
# An expression of the language, and how many matrices of SIDE x SIDE it reads and writes.
ELEMENTS = {"relu(x)": 2, "gelu(x)": 2, "x + z": 3, "softmax(x)": 2, "layer_norm(x)": 2, "sum(x)": 1, "max(x)": 1}
WITH_WEIGHTS = ("linear", "layer_norm")
FLOPS = {"cpu": 2e11, "cuda": 2e13}  # a second, about: for how long a measurement takes, not for what it says
BANDWIDTH = {"cpu": 2e10, "cuda": 2e12}
IMAGE_FLOPS = 3.6e9  # of ResNet-18
# What the last evaluation says, and the flags of a run.
TRAINED = {"cnn": ("test_accuracy", []), "sales": ("test_mae", ["--data", OUT / "data"])}

# The prediction is what is measured; what is trained is two numbers beside it.
TEMPLATE = """data {{
  train = npz("none.npz")  # there is no such file: bench draws random numbers
  x : f32[{width}]
  z : f32[{width}]
  t : f32[1]
}}

model {{
  apart = linear(t, 1)
  y     = {expression}
}}

train {{
  loss      = mse(apart, t)
  predict   = y
  optimizer = sgd(0.1)
{frozen}  batch     = {batch}
}}
"""


@dataclass(frozen=True)
class Program:
    """What a command writes; for a model, `text` where it is not a file of the repository."""

    name: str
    command: tuple
    text: str | None = None

    @property
    def path(self):
        return FOLDER / self.name

    def is_current(self):
        made_from = [MTC, *(ROOT / "models").glob("*.mt"), *(ROOT / "bench").glob("*")]
        return self.path.exists() and self.path.stat().st_mtime > max(file.stat().st_mtime for file in made_from)

    def compile(self):
        if self.text:
            self.path.with_suffix(".mt").write_text(self.text)
        run([*self.command, "-o", self.path])
        progress(f"compiled {self.name}")

    def bench(self, *flags):
        progress(f"measuring {self.name}")
        return json_lines(run([self.path, "bench", "--runs", 5, *flags], env=ENVIRONMENT))[-1]

    def forward(self, work, rates):
        """The forward pass; `work` at `rates`, of the CPU and of a GPU, says how many steps take about 50 ms."""
        steps = 0.05 * rates["cpu" if "cpu" in self.command else "cuda"] / work
        return self.bench("--forward", "--steps", int(min(max(steps, 1), 200)))


def mtc_program(name, source, target, arch, *flags, text=None):
    """target: cpu, or a precision on the GPU."""
    device = ["--target", "cpu", "--precision", "fp32"] if target == "cpu" else ["--target", "cuda", "--precision", target]
    device += ["--arch", arch] if arch and target != "cpu" else []
    return Program(f"{name}-{target}", (MTC, source, *device, *flags, "--keep", FOLDER / f"{name}-{target}.parts"), text)


def written(name, target, arch, **values):
    """A program of TEMPLATE."""
    frozen = '  freeze    = ["y.*"]\n' if values["expression"].startswith(WITH_WEIGHTS) else ""
    text = TEMPLATE.format(frozen=frozen, **values)
    source = FOLDER / f"{name}-{target}.mt"
    return mtc_program(name, source, target, arch, text=text)


def nvcc_program(name, source, arch, *flags):
    code = with_all_instructions(arch) if arch else native_architecture()
    return Program(name, ("nvcc", "-std=c++17", "-O3", f"-arch={code}", "-Ikernels_lib", "-Iruntime", "-Ibench", *flags, source))


def operation_name(expression):
    return "".join(c if c.isalnum() else "_" for c in expression)


class Ours:
    """The programs of each part and what they measure; `arch` is of GPUs that are elsewhere."""

    def __init__(self, arch):
        self.arch = arch

    # ---- programs ----

    def product(self, size, target):
        return written(f"product{size}", target, self.arch, width=size, batch=size,
                       expression=f"linear(x, {size}, bias = false)")

    def element(self, expression, target):
        return written(operation_name(expression), target, self.arch, width=SIDE, batch=SIDE, expression=expression)

    def resnet18(self, batch, blocks, target):
        return mtc_program(f"resnet18-{blocks}-{batch}", "bench/resnet18_prefix.mt", target, self.arch, "--set",
                           f"examples={batch}", "--set", f"blocks={blocks}")

    def trained(self, model, target):
        return mtc_program(model, f"models/{model}.mt", target, self.arch)

    def squares(self):
        return nvcc_program("matmul", "bench/matmul.cu", self.arch, '-DCASES="matmul_squares.inc"', "-lcublas")

    def naive(self):
        return Program("naive", ("cc", "-std=c11", "-O3", "-march=native", "bench/naive.c"))

    def copies_program(self):
        return nvcc_program("copies", "bench/copies.cu", self.arch)

    def attention_library(self):
        return nvcc_program("attention.so", "bench/attention.cu", self.arch,
                            '-DCASES="attention_speed.inc"', "-shared", "-Xcompiler", "-fPIC")

    def programs(self, part):
        targets = ["cpu", "fp32"]
        return {
            "products": lambda: [self.squares(), self.naive(), *(self.product(n, t) for n in SIZES for t in targets)],
            "elements": lambda: [self.element(e, t) for e in ELEMENTS for t in targets],
            "attention": lambda: [self.attention_library()],
            "forward": lambda: [self.resnet18(b, 8, t) for b in BATCHES for t in ("cpu", "fp32", "bf16")],
            "layers": lambda: [self.resnet18(64, k, t) for k in BLOCKS for t in ("cpu", "fp32", "bf16")],
            "training": lambda: [self.trained(m, t) for m in TRAINED for t in targets],
            "copies": lambda: [self.copies_program()],
        }[part]()

    def compile(self, parts):
        programs = {program.name: program for part in parts for program in self.programs(part)}
        missing = [program for program in programs.values() if not program.is_current()]
        progress(f"{len(missing)} of {len(programs)} programs to compile")
        FOLDER.mkdir(parents=True, exist_ok=True)
        with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
            list(pool.map(Program.compile, missing))

    # ---- figures ----

    def products(self):
        rows = {size: {"size": size} for size in SIZES}
        for line in json_lines(run([self.squares().path])):
            row = rows[int(line["work"].split()[1].split("x")[0])]
            if not line["ok"]:
                sys.exit(f"a wrong product: {line}")
            if line["ms"] * 1e3 < row.get("kernel_us", 1e30):
                row |= {"kernel_us": line["ms"] * 1e3, "tile": line["tile"]}
            row |= {f"{name}_us": 1e3 * line[f"{name}_ms"] for name in ("naive", "coalesced", "shared_tile", "cublas")}
        for size, row in rows.items():
            some = min(size, max(4, 2 ** 27 // size ** 2))  # of more rows, a part
            seconds = json_lines(run([self.naive().path, size, some]))[0]["seconds"]
            row |= {"cpu_naive_us": 1e6 * seconds * size / some, "cpu_naive_rows": some}
            for name, target in (("program_us", "fp32"), ("cpu_program_us", "cpu")):
                row[name] = self.product(size, target).forward(2 * size ** 3, FLOPS)["us_per_batch"]
        return list(rows.values())

    def elements(self):
        return [self.element_row(expression, 4 * SIDE * SIDE * matrices) for expression, matrices in ELEMENTS.items()]

    def element_row(self, expression, size):
        program, on_cpu = (self.element(expression, target).forward(size, BANDWIDTH) for target in ("fp32", "cpu"))
        return {"operation": expression, "bytes": size, "program_us": program["us_per_batch"],
                "cpu_program_us": on_cpu["us_per_batch"]}

    def attention(self):
        return json_lines(run([sys.executable, "bench/attention.py", self.attention_library().path]))

    def forward_rows(self, batch, blocks):
        for target in ("cpu", "fp32", "bf16"):
            measured = self.resnet18(batch, blocks, target).forward(batch * IMAGE_FLOPS * (1 + blocks) / 9, FLOPS)
            yield {"batch": batch, "blocks": blocks, "target": target, "us": measured["us_per_batch"],
                   "planned_bytes": measured["planned_bytes"], "device_bytes": measured["device_bytes"]}

    def forward_part(self):
        return [row for batch in BATCHES for row in self.forward_rows(batch, 8)]

    def layers(self):
        return [row for blocks in BLOCKS for row in self.forward_rows(64, blocks)]

    def training(self):
        return [self.training_row(model, target) for model in TRAINED for target in ("fp32", "cpu")]

    def training_row(self, model, target):
        """Ten epochs: the whole process, from start to exit, and the training alone, with what it evaluates."""
        figure, flags = TRAINED[model]
        program, log = self.trained(model, target), FOLDER / f"{model}-{target}.jsonl"
        measured = program.bench(*flags)
        began = time.perf_counter()
        run([program.path, "--epochs", 10, "--quiet", "--log", log, *flags], env=ENVIRONMENT)
        process = time.perf_counter() - began
        epochs = [event for event in json_lines(log.read_text()) if event["event"] == "epoch"]
        return {"model": model, "target": target, "figure": epochs[-1][figure], "process_s": process,
                "train_s": epochs[-1]["seconds"], "us_per_step": measured["us_per_step"],
                "device_bytes": measured["device_bytes"], "planned_bytes": measured["planned_bytes"]}

    def copies(self):
        return json_lines(run([self.copies_program().path, SIDE]))

    def measure(self, part):
        progress(f"mtc: {part}")
        return {"products": self.products, "elements": self.elements, "attention": self.attention, "forward": self.forward_part,
                "layers": self.layers, "training": self.training, "copies": self.copies}[part]()
