"""Values of a model can have any name: also those that the C and CUDA code, its headers and its libraries use."""

import os
import re
import subprocess

import pytest

from conftest import ROOT

TEMPLATE = """data {{
  train = npy("x", "y")
  first : f32[4, 6, 6]
  label : f32[3]
}}
model {{
  {values}
  last = linear(flatten({end}), 3)
}}
train {{
  loss      = mse(last, label)
  optimizer = sgd(0.1)
  batch     = 4
}}
"""
INCLUDES = [f"-I{ROOT / folder}" for folder in ("kernels_lib", "runtime")]
AT_A_TIME = 40


def model(names):
    """Each a kernel's own result."""
    values = [f"{name} = relu(conv2d({before}, 4, 3, padding = 1))" for before, name in zip(["first", *names], names)]
    return TEMPLATE.format(values="\n  ".join(values), end=names[-1])


def preprocessed(text, *flags):
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-fopenmp", *flags, "-x", "c", "-", *INCLUDES]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def words_of(text):
    """All that is called something in a program and its headers, macros too; what begins with _ is the compiler's own."""
    everything = text + preprocessed(text)
    found = set(re.findall(r"\b[A-Za-z]\w*", re.sub(r'"[^"\n]*"|//.*', "", everything)))
    return sorted(found | set(re.findall(r"#define ([A-Za-z]\w*)", preprocessed(text, "-dM"))))


def free_of(mtc, names, tmp_path):
    """Those that no function or word of the language has: where one of them has, each half is asked, to the last."""
    path, half = tmp_path / "free.mt", len(names) // 2
    path.write_text(model(names))
    if mtc(path, "--emit=graph").returncode == 0:
        return names
    return free_of(mtc, names[:half], tmp_path) + free_of(mtc, names[half:], tmp_path) if half else []


def test_all_words_of_a_c_program(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model(["value"]))
    words = words_of(mtc(path, "--target", "cpu", "--emit=c").stdout)
    names = free_of(mtc, words, tmp_path)
    assert len(names) > 800 and {"count", "kernel", "time", "window", "memcpy", "Axis"} <= set(names)
    for first in range(0, len(names), AT_A_TIME):
        path.write_text(model(names[first : first + AT_A_TIME]))
        emitted = mtc(path, "--target", "cpu", "--emit=c")
        assert emitted.returncode == 0, emitted.stderr
        compiler = [os.environ.get("CC", "cc"), "-std=c11", "-D_XOPEN_SOURCE=700", "-fopenmp", "-fsyntax-only", "-w", "-x", "c", "-"]
        done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:2000]


def sizes_model(names):
    """Each with an axis of its own length, so that the length is a constant of that name in capitals."""
    values = [f"{name} = relu(linear({before}, {37 + k}))" for k, (before, name) in enumerate(zip(["flatten(first)", *names], names))]
    return TEMPLATE.format(values="\n  ".join(values), end=names[-1])


def test_sizes_called_like_constants_of_c(mtc, tmp_path):
    """A value m_pi has a size that cannot be M_PI."""
    path = tmp_path / "m.mt"
    path.write_text(model(["value"]))
    words = sorted({word.lower() for word in words_of(mtc(path, "--target", "cpu", "--emit=c").stdout) if word.isupper()})
    names = free_of(mtc, words, tmp_path)
    assert len(names) > 200 and {"m_pi", "mtc_f32", "huge_val", "size_max", "subnormals_are_zero"} <= set(names)
    for first in range(0, len(names), AT_A_TIME):
        path.write_text(sizes_model(names[first : first + AT_A_TIME]))
        emitted = mtc(path, "--target", "cpu", "--emit=c")
        compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-fopenmp", "-fsyntax-only", "-w", "-x", "c", "-"]
        done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
        assert emitted.returncode == done.returncode == 0, emitted.stderr + done.stderr[:2000]


def test_sizes_keep_the_name_of_their_value(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(sizes_model(["hidden", "m_pi", "infinity"]))
    source = mtc(path, "--target", "cpu", "--emit=c").stdout
    assert re.findall(r"^    ([A-Z]\w+) = (?:37|38|39)\b", source, re.M) == ["HIDDEN", "M_PI_SIZE", "INFINITY_2"]


def test_sizes_called_like_constants_of_cuda(cuda_takes):
    """What the kernels of its library and its headers have as constants."""
    cuda_takes(sizes_model("threads lanes stages groups chunk pad box m_pi int_max cuda_version nv_if_target".split()))


def test_names_that_kernels_call(mtc, tmp_path, cuda_takes):
    """Functions and types of the library as values, and MtcRun as a weight: a member of the name would hide the type."""
    names = "team_product team_max Pack load_pack store_pack vectorized hold_row Warp end dim3 i1 j0 k1 value_product value_tile warpSize".split()
    text = local_model(names).replace("linear(flatten(", 'linear(weight([144], normal(0, 1), name = "MtcRun") * flatten(')
    (tmp_path / "m.mt").write_text(text)
    source = mtc(tmp_path / "m.mt", "--target", "cuda", "--emit=cu").stdout
    assert not set(re.findall(r"(?:float|Vector<\w+>) (\w+) =", source)) & {"team_product", "team_max", "Pack", "load_pack", "store_pack", "dim3"}
    cuda_takes(text)


def test_functions_that_c_compilers_know(mtc, tmp_path):
    """Of headers that no program includes: a function of the name would be a warning."""
    path = tmp_path / "m.mt"
    path.write_text(model("abort abs calloc exit fork free isalpha labs malloc printf puts snprintf toupper vprintf".split()))
    emitted = mtc(path, "--target", "cpu", "--emit=c")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
    done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


def local_model(names):
    """Each a local of one kernel: it is read twice, and calls functions of the C library on the way."""
    before = ["first", *names]
    values = [f"{name} = exp({value}) * abs({value}) + sqrt({value})^3" for value, name in zip(before, names)]
    return TEMPLATE.format(values="\n  ".join(values), end=names[-1])


def test_functions_of_c_as_locals(mtc, tmp_path):
    path = tmp_path / "m.mt"
    names = "fabsf powf sqrtf expf float_exp float_max float_log fabs cosh window count kernel y1 j0 index time truth memcpy row_at".split()
    path.write_text(local_model(names))
    emitted = mtc(path, "--target", "cpu", "--emit=c")
    assert emitted.returncode == 0, emitted.stderr
    compiler = [os.environ.get("CC", "cc"), "-std=c11", "-D_XOPEN_SOURCE=700", "-fopenmp", "-fsyntax-only", "-w", "-x", "c", "-"]
    done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


def test_a_kernel_that_cannot_have_its_name(mtc, tmp_path):
    path = tmp_path / "m.mt"
    path.write_text(model(["count", "sum_of"]))
    source = mtc(path, "--target", "cpu", "--emit=c").stdout
    assert "static void count_kernel(" in source and "static void sum_of(" in source
    assert "struct count {" in mtc(path, "--target", "cuda", "--emit=cu").stdout


def test_names_of_cuda(mtc, tmp_path):
    """What its headers define, and the library, are no kernels: nvcc says "already declared"."""
    path = tmp_path / "m.mt"
    names = "h std threadIdx warpSize ushort uint cuda float2 int4 dim3 half tiles_of first_rows".split()
    path.write_text(model(names))
    kernels = re.findall(r"^struct (\w+) \{", mtc(path, "--target", "cuda", "--emit=cu").stdout, re.M)
    assert "h" in kernels and not set(kernels) & set(names[1:]), kernels


def test_names_of_a_cuda_program(cuda_takes):
    names = ("count kernel filter window time clock round y1 j0 truth Axis Tile Product folds_of Run Places EvenRows begin_at part_of memcpy "
             "grid warp gate")
    cuda_takes(model(names.split()))


def test_types_and_constants_of_the_cuda_library(mtc, tmp_path):
    """No kernel has the name of one: C++ would take it for another declaration, where functions may have one name."""
    library = "".join(path.read_text() for path in [ROOT / "kernels_lib/shared.h", *(ROOT / "kernels_lib/cuda").glob("*.cuh")])
    types = re.findall(r"^(?:template <.*> *)?(?:struct|class|enum|using) ([A-Za-z]\w*)", library, re.M)
    constants = re.findall(r"^(?:template <.*> *)?(?:static |inline )*constexpr \w+ ([a-z]\w*)(?:<.*>)? =", library, re.M)
    names = free_of(mtc, sorted({*types, *constants}), tmp_path)
    assert len(names) > 150 and {"Pack", "Integer", "SquareTile", "OfSums", "tf32x3", "is_tensor", "has_squares"} <= set(names)
    (tmp_path / "m.mt").write_text(model(names))
    source = mtc(tmp_path / "m.mt", "--target", "cuda", "--emit=cu").stdout
    declared = re.findall(r"^(?:struct|template <.*> struct|using) (\w+)", source, re.M)
    assert len(declared) > len(names) and not set(declared) & set(names)


def test_a_value_called_like_what_a_kernel_is_given(mtc, tmp_path):
    """Equations say the name; the kernel has no parameter that it does not use."""
    path = tmp_path / "m.mt"
    path.write_text(model(["batch"]))
    emitted = mtc(path, "--target", "cpu", "--emit=c")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
    done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


EXAMPLE = """data {{
  train = npy("x", "n")
  x : f32[2, 8, 8]
  n : f32
}}
model {{
  {name} = mean(x) + n
  h      = softmax(matmul(x, x) + weight([2, 8, 1]) * {name})
  out    = linear(flatten(h), 1) * {name}
}}
train {{
  loss      = mean((out - n)^2)
  optimizer = sgd(0.1)
  batch     = 4
  predict   = out
}}
"""


@pytest.mark.parametrize("name", "i0 j0 end example row_share rows left run".split())
def test_a_number_of_an_example_called_like_a_loop(name, mtc, tmp_path):
    """Also where a member of the name is all that the text has of it: the row's own is declared where it is used only."""
    path = tmp_path / "m.mt"
    path.write_text(EXAMPLE.format(name=name))
    emitted = mtc(path, "--target", "cpu", "--emit=c")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
    done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


ONCE = """data {
  train = npy("x", "h0", "scale", "n", "bytes", "label")
  x     : f32[8, 16]
  h0    : f32[16]
  scale : f32
  n     : i32
  bytes : u8[8]
  label : class[3]
}
model {
  m      = h0 * scale + h0
  chosen = where(n > label, label, argmax(m))
  rows   = gather(weight([20, 16]), where(chosen > bytes, iota(8), label)) * x
  out    = linear(concat([reshape(chosen / 7, [1]), mean(rows, axis = 0)]), 3)
}
train {
  loss      = cross_entropy(out, label)
  optimizer = sgd(0.1)
  batch     = 4
}
"""


def test_what_a_row_computes_once_is_declared_once(mtc, tmp_path):
    """A number of a row, and behind it a loop that reads the same ones."""
    path = tmp_path / "m.mt"
    path.write_text(ONCE)
    emitted = mtc(path, "--target", "cpu", "--emit=c")
    compiler = [os.environ.get("CC", "cc"), "-std=gnu11", "-fopenmp", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", "-"]
    done = subprocess.run([*compiler, *INCLUDES], input=emitted.stdout, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
