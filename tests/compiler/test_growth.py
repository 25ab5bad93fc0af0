"""Text and work of the compiler grow with the model, however its values are shared: twice the steps, twice of both.

Work is counted by the memory of a compilation, of which it gives nothing back before it ends; none may take minutes."""

import os
import resource
import subprocess

import pytest
from conftest import MTC

MODEL = """data {{
  train = npy("x", "y")
  x : f32[16]
  y : f32[16]
}}
fn cell(hc, x) {{
  h = slice(hc, 0, 0, 16)
  c = slice(hc, 0, 16, 32)
  g = linear(concat([x, h]), 64)
  i = sigmoid(slice(g, 0, 0, 16))
  f = sigmoid(slice(g, 0, 16, 32))
  o = sigmoid(slice(g, 0, 32, 48))
  next = f * c + i * tanh(slice(g, 0, 48, 64))
  return concat([o * tanh(next), next])
}}
model {{
  a = {first}
{body}
  out = linear(flatten(h), 16)
}}
train {{
  loss      = mse(out, y)
  optimizer = adam(1e-3)
}}
"""
HALF = "concat([slice(h, 0, 8, 16), slice(h, 0, 0, 8)])"
TURNED = "concat([slice(h, 0, 1, 16), slice(h, 0, 0, 1)])"


def repeated(first, step):
    return lambda n: f"  {first}\n  repeat k in 0..{n} {{\n    {step}\n  }}"


def listed(form):
    return lambda n: "  h = " + form.format(", ".join(f"sin(a * {k + 1})" for k in range(n)))


# Steps of the smaller model, and the lines of one with so many.
SHAPES = {
    "lstm": (12, lambda n: repeated("hc = concat([a, a])", "hc = cell(hc, x)")(n) + "\n  h = slice(hc, 0, 0, 16)"),
    "halves exchanged": (20, repeated("h = a", f"h = h + {HALF}")),
    "turned": (10, repeated("h = a", f"h = sin(h + {TURNED})")),
    "turned and squared": (12, repeated("h = a", "h = concat([slice(h, 0, 1, 16), slice(h * h, 0, 0, 1)])")),
    "turned alone": (40, repeated("h = a", f"h = {TURNED}")),
    "transposed": (8, repeated("h = reshape(a, [2, 8])", "h = sin(h + reshape(transpose(h), [2, 8]))")),
    "added": (100, repeated("h = a", "h = h + a")),
    "read twice": (40, repeated("h = a", "h = h + sin(h)")),
    "read by two": (40, repeated("p = a\n  h = sin(a)", "q = h\n    h = h * p\n    p = tanh(q)")),
    "chosen": (40, repeated("h = a", "h = where(h > k / 100, h * 0.9, h + a)")),
    "normed": (20, repeated("h = a", "h = h + layer_norm(h)")),
    "scaled": (40, repeated("h = a", "h = tanh(h * weight([16], constant(1)) + weight([16]))")),
    "residual": (30, repeated("h = a", "h = h + relu(linear(h, 16))")),
    "layers": (50, repeated("h = a", "h = relu(linear(h, 16))")),
    "parts": (100, listed("concat([{}])")),
    "terms": (150, lambda n: listed("{}")(n).replace(", ", " + ")),
    "places": (16, lambda n: repeated("k = iota(16)", "k = where(k > i / 3, k, 15 - k)")(n).replace("repeat k", "repeat i")
               + "\n  h = a + reshape(gather(gather(weight([16, 16]), k), argmax(reshape(x, [1, 16]))), [16])"),
    "lookups": (40, repeated("h = a\n  i = argmax(reshape(x, [1, 16]))", "h = h + reshape(gather(weight([7, 16]), i), [16])")),
}


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))


def costs(path, text, target):
    """Lines of the source, and KiB of memory."""
    path.write_text(text)
    with open(path.with_suffix(".out"), "w+") as out:
        process = subprocess.Popen([MTC, path, f"--emit={target}"], stdout=out, stderr=subprocess.DEVNULL, preexec_fn=limit)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        assert process.returncode == 0
        return sum(1 for _ in out), usage.ru_maxrss


@pytest.mark.parametrize("target", ["c", "cu"])
@pytest.mark.parametrize("first", ["x * 2", "linear(x, 16)"], ids=["forward", "gradient"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_steps_twice_the_work(shape, first, target, tmp_path):
    steps, body = SHAPES[shape]
    (lines, memory), (lines_2, memory_2) = [costs(tmp_path / f"m{n}.mt", MODEL.format(first=first, body=body(n)), target) for n in (steps, 2 * steps)]
    assert lines_2 <= 3 * lines and memory_2 <= 3 * memory, (lines, memory)


ROLLED = """data {
  train = npy("x", "y")
  x : f32[32]
  y : f32[32]
}
model {
  out = linear(STEPS, 32)
}
train {
  loss      = mse(out, y)
  optimizer = sgd(0.1)
}
"""


def test_a_line_of_many_brackets_is_laid_out_in_seconds(tmp_path):
    """Of each element of a tensor that is rolled ten times: ((((j + 22) % 32 + 23) % 32 + ...); there are too many ways to break it for all."""
    steps = "x"
    for step in range(1, 11):
        steps = f"roll({steps}, {step}, axis = 0)"
    (tmp_path / "m.mt").write_text(ROLLED.replace("STEPS", steps))
    done = subprocess.run([MTC, "m.mt", "--emit=c"], cwd=tmp_path, capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (4, 4)))
    assert done.returncode == 0 and "% 32 + 2" in done.stdout, done.stderr
