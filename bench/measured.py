"""What the scripts that measure models share: programs that are compiled before anything is measured, and lines of JSON."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "bench"
MTC = ROOT / "build" / "mtc"


def progress(text):
    print(text, file=sys.stderr, flush=True)


def run(command, stderr=subprocess.PIPE, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT, **options)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr or ''}")
    return done.stdout


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def has_gpu():
    return bool(shutil.which("nvidia-smi")) and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0


def native_architecture():
    """nvcc's own "native" is code for sm_90 without the instructions of its GPUs."""
    capability = run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]).split()[0]
    return with_all_instructions("sm_" + capability.replace(".", ""))


def with_all_instructions(architecture):
    return "sm_90a" if architecture == "sm_90" else architecture


def device_name(cuda):
    if cuda:
        return run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).strip().splitlines()[0]
    return next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")


# ---- programs ----


@dataclass(frozen=True)
class Variant:
    """A model compiled for a precision, or for the CPU, and a batch (None: the model's own), with other values of its params."""

    model: str
    precision: str
    batch: int | None = None
    params: tuple = field(default=(), kw_only=True)  # "NAME=VALUE"

    @property
    def name(self):
        return "-".join((self.model, self.precision, str(self.batch or "own"), *self.params))

    @property
    def program(self):
        return OUT / self.name

    @property
    def source(self):
        of_bench = ROOT / "bench" / f"{self.model}.mt"
        return of_bench if of_bench.exists() else ROOT / "models" / f"{self.model}.mt"

    @property
    def sizes(self):
        own = [f"examples={self.batch}"] if self.batch else []
        return [word for param in (*own, *self.params) for word in ("--set", param)]

    def is_current(self):
        made_from = [MTC, MTC.parent / "libmtc_runtime.a", *(ROOT / "models").glob("*.mt"), self.source]
        return self.program.exists() and self.program.stat().st_mtime > max(path.stat().st_mtime for path in made_from)

    def compile(self, arch):
        cpu = self.precision == "cpu"
        target = ["--target", "cpu" if cpu else "cuda", "--precision", "fp32" if cpu else self.precision]
        target += ["--arch", arch] if arch and not cpu else []
        run([MTC, self.source, "-o", self.program, "--keep", OUT / f"{self.name}.parts", *target, *self.sizes])
        progress(f"compiled {self.name}")

    def bench(self, *flags):
        progress(f"measuring {self.name}")
        return json_lines(run([self.program, "bench", "--runs", 5, *flags]))[-1]


def compile_all(variants, arch, warm_ups=()):
    """The programs that are not there yet, and meanwhile what PyTorch compiles, which it keeps in caches."""
    missing = sorted((variant for variant in variants if not variant.is_current()), key=lambda variant: variant.name)
    progress(f"{len(missing)} of {len(variants)} programs to compile")
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + len(warm_ups)) as pool:
        jobs = [pool.submit(warm_up) for warm_up in warm_ups] + [pool.submit(variant.compile, arch) for variant in missing]
        for job in concurrent.futures.as_completed(jobs):
            job.result()


# ---- numbers in a table ----


def table(titles, rows):
    return ["", "| " + " | ".join(titles) + " |", "|" + "---|" * len(titles), *("| " + " | ".join(row) + " |" for row in rows), ""]


def number(value):
    return "" if value is None else f"{value:,.0f}"


def megabytes(value):
    return "" if value is None else f"{number(value / 1e6)} MB"


def ratio(ours, theirs):
    return "" if not ours or not theirs else f"{ours / theirs:.2f}"
