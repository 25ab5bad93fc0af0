"""Generation: the decode graph against the evaluation, position by position; greedy text against repeated predictions; the
choice of tokens against NumPy; what is refused."""

import ctypes
import json
import re
import subprocess

import numpy as np
import pytest

import bpe
from conftest import MTC, ROOT
from evaluator import evaluate, parse
from fake_data import unpack
from library import Library, pointer
from mtc.abi import Generation, Piece, Sampling

pytestmark = pytest.mark.quick

USAGE, BAD_DATA, NO_INPUT = 64, 65, 66
T, V, B = 12, 19, 3

HEAD = """param T = 12
data {{
  train  = {data}
  window : class[19][T + 1]
}}
model {{
  seen = slice(window, 0, 0, T)
  next = slice(window, 0, 1, T + 1)
"""
TAIL = """}}
train {{
  loss      = cross_entropy(logits, next)
  optimizer = adam(1e-3)
  batch     = 3
  epochs    = 1
  {more}
}}
"""

MODELS = {
    "one_hot": """
  x      = linear(one_hot(seen, 19), 8) + weight([T, 8], init = normal(0, 1))
  h      = x + linear(gelu(linear(layer_norm(x), 32)), 8)
  logits = linear(h, 19)
""",
    "embedding": """
  x      = embedding(seen, 19, 8) * (iota(8) + 1) + reshape(iota(T) / 12, [T, 1])
  logits = linear(x, 19)
""",
    "columns": """
  place  = weight([8, T], init = normal(0, 1))
  x      = embedding(seen, 19, 8) + transpose(place)
  logits = linear(relu(x), 19)
""",
    "reordered": """
  x      = embedding(seen, 19, 6) + weight([T, 6])
  y      = x * roll(flip(x, axis = 1), 2, axis = 1)
  logits = linear(relu(y), 19)
""",
    "attention": """
  x      = embedding(seen, 19, 16) + weight([T, 16], init = normal(0, 1))
  n      = layer_norm(x)
  a      = attention(linear(n, 16), linear(n, 16), linear(n, 16), heads = 2, causal = true)
  h      = x + linear(a, 16)
  logits = linear(layer_norm(h), 19)
""",
    "two_layers": """
  x = embedding(seen, 19, 24)
  n = layer_norm(x)
  a = x + linear(attention(rotary(linear(n, 24), heads = 6), rotary(linear(n, 12), heads = 3), linear(n, 12), heads = 6, kv_heads = 3, causal = true), 24)
  m = a + linear(gelu(linear(layer_norm(a), 48)), 24)
  o = layer_norm(m)
  p = linear(o, 72)
  b = m + linear(attention(slice(p, 1, 0, 24), slice(p, 1, 24, 48), slice(p, 1, 48, 72), heads = 4, causal = true, window = 5), 24)
  logits = linear(b, 19)
""",
    "reshaped": """
  x      = embedding(seen, 19, 6)
  y      = reshape(x, [T, 2, 3]) * weight([2, 3], init = normal(0, 1))
  logits = linear(reshape(max(y, 1), [T, 3]), 19)
""",
}


def model_of(layers, data, more=""):
    return HEAD.format(data=data) + layers.strip("\n") + "\n" + TAIL.format(more=more)


TEXT = 'text("input.txt")'


class Decoder(Library):
    def decode(self, tokens, scores=V):
        """The prediction after each of the tokens, in their order."""
        out = np.empty((len(tokens), scores), np.float32)
        for position, token in enumerate(tokens):
            self.call("decode", ctypes.c_int64(position), ctypes.c_int32(int(token)), pointer(out[position]))
        return out.astype(float)

    def generate(self, prompt, count, seed=0, meanwhile=lambda: None):
        """The tokens of a text that goes on from those of the prompt."""
        text = " ".join(str(token) for token in prompt).encode()
        generator, piece, made = ctypes.c_void_p(), Piece(), []
        self.call("generator_new", ctypes.byref(Generation.of(Sampling(1, 1, 0, 1, 0, seed), text, count, 1, 1, [])), ctypes.byref(generator))
        while not self.library.mtc_generator_next(generator, ctypes.byref(piece)) and piece.text >= 0:
            made += [piece.token] * (piece.token >= 0)
            meanwhile()
        self.library.mtc_generator_free(generator)
        return made

    def prompted(self, tokens, scores=V):
        """The prediction after the last token, those before it having been read as a prompt is."""
        assert self.generate(tokens, 1)[:len(tokens)] == list(tokens)
        out = np.empty(scores, np.float32)
        self.call("decode", ctypes.c_int64(len(tokens) - 1), ctypes.c_int32(int(tokens[-1])), pointer(out))
        return out.astype(float)

    def predictions(self, tokens):
        """Of the evaluation, which sees whole windows: those of the tokens given, however few."""
        window = np.zeros((1, T + 1), np.uint8)
        window[0, :len(tokens)] = tokens
        return self.predict([window], T * V).reshape(T, V)[:len(tokens)]


def library(mtc, folder, model, *flags, target="cpu"):
    (folder / "m.mt").write_text(model)
    done = mtc(folder / "m.mt", "--shared", "-o", folder / "m.so", "--keep", folder, "--target", target, *flags)
    assert done.returncode == 0, done.stderr
    return Decoder(folder / "m.so")


def tokens_of(seed, count=T):
    return np.random.default_rng(seed).integers(0, V, count)


def check_decode(model, tolerance):
    tokens = tokens_of(0)
    assert np.allclose(model.decode(tokens), model.predictions(tokens), rtol=tolerance, atol=tolerance * 1e-2)


# ---- decode = eval ----


@pytest.fixture(scope="module")
def input_text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    draw = np.random.default_rng(5)
    words = ["abc", "dé", "fgh", "ij", "klmno", "pq"]
    (folder / "input.txt").write_text("".join(words[i] + " \n"[draw.integers(0, 2)] for i in draw.integers(0, 6, 300)))
    return folder


@pytest.mark.parametrize("stage", ["graph", "simple"])
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_of_one_position(name, stage, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model_of(MODELS[name], TEXT))
    graphs, draw = parse(mtc(tmp_path / "m.mt", f"--emit={stage}").stdout), np.random.default_rng(3)
    leaves = {node.name: draw.normal(size=node.shape) for node in graphs["eval"] if node.op == "weight"}
    window = draw.integers(0, V, (B, T + 1))
    expected = evaluate(graphs["eval"], {**leaves, "window": window}).output
    for example in range(B):
        caches = {}
        for position in range(T):
            place = {"position": position, "token": window[example, position], "caches": caches}
            found = evaluate(graphs["decode"], {**leaves, **place}).output
            assert np.allclose(found[0, 0], expected[example, position], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stage", ["graph", "simple"])
@pytest.mark.parametrize("name", ["attention", "two_layers"])
def test_the_graph_of_a_prompt(name, stage, mtc, tmp_path):
    """It leaves in the caches what its tokens leave there one after the other."""
    (tmp_path / "m.mt").write_text(model_of(MODELS[name], TEXT))
    graphs, draw = parse(mtc(tmp_path / "m.mt", f"--emit={stage}").stdout), np.random.default_rng(3)
    leaves = {node.name: draw.normal(size=node.shape) for node in graphs["eval"] if node.op == "weight"}
    window, expected, found = draw.integers(0, V, T + 1), {}, {}
    for position in range(T):
        evaluate(graphs["decode"], {**leaves, "position": position, "token": window[position], "caches": expected})
    evaluate(graphs["prefill"], {**leaves, "prompt": window, "caches": found})
    assert len(found) == len(expected) > 0
    for cache, rows in expected.items():
        assert np.allclose(found[cache], rows, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stage", ["graph", "simple"])
@pytest.mark.parametrize("name", MODELS)
def test_the_graph_of_several_texts(name, stage, mtc, tmp_path):
    """What that of one text says of each."""
    (tmp_path / "m.mt").write_text(model_of(MODELS[name], TEXT))
    graphs, draw = parse(mtc(tmp_path / "m.mt", "--decode-batch", "4", f"--emit={stage}").stdout), np.random.default_rng(3)
    leaves = {node.name: draw.normal(size=node.shape) for node in graphs["eval"] if node.op == "weight"}
    window, caches = draw.integers(0, V, (4, T)), [{} for _ in range(5)]
    for position in range(T):
        place = {**leaves, "position": position}
        found = evaluate(graphs["texts"], {**place, "tokens": window[:, position], "caches": caches[4]}).output
        for text in range(4):
            expected = evaluate(graphs["decode"], {**place, "token": window[text, position], "caches": caches[text]}).output
            assert np.allclose(found[text], expected[0], rtol=1e-9, atol=1e-12)


def test_without_a_cache_there_is_nothing_to_read(mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model_of(MODELS["embedding"], TEXT))
    assert "prefill" not in parse(mtc(tmp_path / "m.mt", "--emit=graph").stdout)


@pytest.mark.vectors
@pytest.mark.parametrize("name", MODELS)
def test_each_position_is_that_of_the_evaluation(name, mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS[name], TEXT))
    check_decode(model, 1e-5)
    # a second sequence, from its beginning on: what the first left in the cache does not matter
    tokens = tokens_of(1, 7)
    assert np.allclose(model.decode(tokens), model.predictions(tokens), rtol=1e-5, atol=1e-7)


NUMBERS = 'tokens("tokens.bin")'


@pytest.mark.vectors
@pytest.mark.parametrize("flags", [(), ("--precision", "bf16")], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", ["attention", "two_layers"])
def test_a_prompt_is_read_at_once(name, flags, mtc, tmp_path):
    model, tolerance = library(mtc, tmp_path, model_of(MODELS[name], NUMBERS), *flags), 0.05 if flags else 1e-5
    assert ".prefill_from = 1," in (tmp_path / "m.c").read_text()
    for count in (2, 3, T - 1, T):
        tokens = tokens_of(count, count)
        assert np.allclose(model.prompted(tokens), model.decode(tokens)[-1], rtol=tolerance, atol=tolerance * 1e-2)


@pytest.mark.vectors
def test_a_text_does_not_depend_on_what_the_cache_has(mtc, tmp_path):
    """Between its tokens the caches are written over again and again: it is read from its beginning, as it was."""
    model = library(mtc, tmp_path, model_of(MODELS["two_layers"], NUMBERS))
    prompt = tokens_of(5, 5)
    texts = [model.generate(prompt, 3 * T, seed=4), model.generate(prompt, 3 * T, 4, lambda: model.predict([np.zeros((1, T + 1), np.uint16)], T * V)),
             model.generate(prompt, 3 * T, 4, lambda: model.decode(prompt[:3]))]
    assert texts[0] == texts[1] == texts[2] != model.generate(prompt, 3 * T, seed=5)


def test_bf16_rounds_what_the_cache_keeps(mtc, tmp_path):
    check_decode(library(mtc, tmp_path, model_of(MODELS["two_layers"], TEXT), "--precision", "bf16"), 0.05)
    assert "bfloat16 *decode_cache;" in (tmp_path / "m.c").read_text()


def test_averaged_weights_are_those_of_the_evaluation(mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS["attention"], TEXT, "ema = 0.9"))
    model.set_data([np.random.default_rng(2).integers(0, V, (6, T + 1)).astype(np.uint8)])
    model.train(5, 1)
    check_decode(model, 1e-5)


def test_training_between_tokens_needs_only_a_new_beginning(mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS["two_layers"], TEXT))
    model.set_data([np.random.default_rng(2).integers(0, V, (6, T + 1)).astype(np.uint8)])
    for _ in range(2):
        model.train(2, 1)
        check_decode(model, 1e-5)


def test_places_that_do_not_exist(mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS["one_hot"], TEXT))
    for position, token in ((T, 0), (-1, 0), (0, V), (0, -1)):
        with pytest.raises(AssertionError, match="there are 19 tokens and 12 positions"):
            model.call("decode", ctypes.c_int64(position), ctypes.c_int32(token), None)


@pytest.mark.gpu
@pytest.mark.parametrize("flags", [(), ("--precision", "bf16")], ids=["fp32", "bf16"])
@pytest.mark.parametrize("name", ["attention", "two_layers"])
def test_gpu_decodes_what_the_cpu_does(name, flags, mtc, tmp_path):
    models = {}
    for target in ("cpu", "cuda"):
        (tmp_path / target).mkdir()
        models[target] = library(mtc, tmp_path / target, model_of(MODELS[name], TEXT), *flags, target=target)
    tokens, tolerance = tokens_of(0), 0.05 if flags else 2e-4
    expected = models["cpu"].decode(tokens)
    for _ in range(2):  # the recorded launches, and again
        assert np.allclose(models["cuda"].decode(tokens), expected, rtol=tolerance, atol=tolerance * 1e-2)
    check_decode(models["cuda"], tolerance)


# Wide enough for weights in 16 bits, rows that come ahead, a norm in each block, scores in pieces.
WIDE = """
  x      = embedding(seen, 3000, 256)
  n      = layer_norm(x)
  a      = attention(linear(n, 256), linear(n, 256), linear(n, 256), heads = 4, causal = true)
  h      = x + linear(a, 256)
  m      = h + linear(gelu(linear(layer_norm(h), 1024)), 256)
  logits = linear(layer_norm(m), 3000)
"""


@pytest.mark.parametrize("flags", [(), ("--precision", "bf16"), ("--precision", "fp16")], ids=["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_decodes_what_it_evaluates(target, flags, mtc, tmp_path):
    text = model_of(WIDE, 'tokens("tokens.bin")').replace("class[19]", "class[3000]")
    model, tolerance = library(mtc, tmp_path, text, *flags, target=target), 0.05 if flags else 2e-4
    first = tokens_of(0)
    window = np.zeros((1, T + 1), np.uint16)
    window[0, :T] = first
    expected = model.predict([window], T * 3000).reshape(T, 3000)
    for tokens in (first, tokens_of(1), first):  # what is made at position 0 stays
        scores = model.decode(tokens, 3000)
    assert np.allclose(scores, expected, rtol=tolerance, atol=tolerance * 1e-2)
    assert np.allclose(model.prompted(first, 3000), expected[-1], rtol=tolerance, atol=tolerance * 1e-2)


def decoding_of(mtc, folder, *flags):
    """What a GPU runs for a token of the wide model."""
    text = model_of(WIDE, 'tokens("tokens.bin")').replace("class[19]", "class[3000]")
    (folder / "m.mt").write_text(text)
    done = mtc(folder / "m.mt", "--emit=cu", "--arch", "sm_90a", "-o", folder / "m.cu", *flags)
    assert done.returncode == 0, done.stderr
    return (folder / "m.cu").read_text().split("// ---- decoding")[1]


def test_the_scores_of_a_token_are_folded_in_pieces_where_they_are_long(mtc, tmp_path):
    assert "prediction_partial" not in decoding_of(mtc, tmp_path)
    (tmp_path / "m.mt").write_text((tmp_path / "m.mt").read_text().replace("3000", "9000"))
    done = mtc(tmp_path / "m.mt", "--emit=cu", "--arch", "sm_90a", "-o", tmp_path / "m.cu")
    assert done.returncode == 0, done.stderr
    decoding = (tmp_path / "m.cu").read_text().split("// ---- decoding")[1]
    assert "struct decode_prediction_partial {\n    static constexpr int tiles = divide_up(35, Warp::rows);" in decoding  # 35 pieces of 256, and what is left over
    assert "for (int j = team.first; j < 40; j += team.stride)" in decoding


def test_products_of_a_token_read_copies_of_weights_in_16_bits(mtc, tmp_path):
    decoding = decoding_of(mtc, tmp_path, "--precision", "bf16")
    assert "phase 1 is launched where run->begins alone" in decoding and "token_graphs.decode<Decode, " in decoding
    assert "to_float(t.decode_m_1_weight_bf16" in decoding  # 1024 x 256 numbers
    assert "token_graphs.decode<Decode>(run)" in decoding_of(mtc, tmp_path)


def test_a_launch_of_a_token_does_what_it_can_ahead_of_its_gate(mtc, tmp_path):
    """Weights come to shared memory; a norm's row, which is short, is computed by each block that reads it."""
    decoding = decoding_of(mtc, tmp_path, "--precision", "bf16")
    assert "bring_rows<Warp>(" in decoding and "await_rows();" in decoding
    norm, product = decoding.split("own.decode_to_m_add = row;\n        own.decode_m_1_weight_bf16 =", 1)
    assert "decode_to_m::run(own, batch, 0, shared, gate);" in norm
    assert product.index("compute_row();") < product.index("await_rows();") < product.index("decode_to_m_2::run(own, batch, tile, shared, gate);")


def test_a_token_of_integers_reads_copies_beside_them_and_makes_integers_where_they_are_read(mtc, tmp_path):
    """The last product is one of bf16; what attention leaves becomes integers in each block of the product that reads them."""
    tied = WIDE.replace("embedding(seen, 3000, 256)", "gather(table, seen)").replace("linear(layer_norm(m), 3000)", "unembed(layer_norm(m), table)")
    text = model_of("  table = weight([3000, 256], normal(0, 0.02))" + tied, 'tokens("tokens.bin")').replace("class[19]", "class[3000]")
    (tmp_path / "m.mt").write_text(text)
    done = mtc(tmp_path / "m.mt", "--emit=cu", "--arch", "sm_90a", "--precision", "int8", "-o", tmp_path / "m.cu")
    assert done.returncode == 0, done.stderr
    decoding = (tmp_path / "m.cu").read_text().split("// ---- decoding")[1]
    assert "load_pack<4>(t.decode_table_bf16 + i * " in decoding and "round_bf16" not in decoding
    assert "own.decode_to_h_to_i8 = row;" in decoding


def test_numbers_of_several_tiles_are_computed_by_each_block_behind_one_gate(mtc, tmp_path):
    """512 integers of what attention leaves are two tiles of 256 threads."""
    (tmp_path / "m.mt").write_text(model_of(WIDE.replace("256", "512"), 'tokens("tokens.bin")').replace("class[19]", "class[3000]"))
    done = mtc(tmp_path / "m.mt", "--emit=cu", "--arch", "sm_90a", "--precision", "int8", "-o", tmp_path / "m.cu")
    assert done.returncode == 0, done.stderr
    rows = (tmp_path / "m.cu").read_text().split("// ---- decoding")[1].split("auto compute_row = ")
    several = next(row for row in rows if "own.decode_to_h_to_i8 = row;" in row)
    assert re.search(r"gate\(\);\n +Gate passed;\n +for \(int part = 0; part < \w+::tiles; part\+\+\)\n +\w+::run\(own, batch, part, shared, passed\);", several), several


@pytest.mark.parametrize("readers, computed", [(256, True), (1024, True), (8192, False)])
def test_a_row_is_computed_by_each_block_where_that_takes_less_than_a_launch(readers, computed, mtc, tmp_path):
    """A norm of 1920 numbers reads and writes 30 KB: for 2 blocks of each multiprocessor that is soon done, for 8 it is not. 1024 rows are a
    block for 8."""
    layers = f"""
  x      = linear(embedding(seen, 19, 8), 1920)
  logits = linear(relu(linear(layer_norm(x), {readers})), 19)
"""
    (tmp_path / "m.mt").write_text(model_of(layers, TEXT))
    done = mtc(tmp_path / "m.mt", "--emit=cu", "--arch", "sm_90a", "-o", tmp_path / "m.cu")
    assert done.returncode == 0, done.stderr
    decoding = (tmp_path / "m.cu").read_text().split("// ---- decoding")[1]
    assert ("with_row<float>(kernel_bytes, 1920), 0)" in decoding) == computed


def test_a_row_that_each_block_computes_is_there_for_launches_behind_them(mtc, tmp_path):
    """Both factors of a gated layer read the norm, and the second one's product reads the first."""
    gated = WIDE.replace("linear(gelu(linear(layer_norm(h), 1024)), 256)", "gated(layer_norm(h))")
    layer = "fn gated(x) {\n  gate = silu(linear(x, 1024))\n  return linear(gate * linear(x, 1024), 256)\n}\nmodel {"
    (tmp_path / "m.mt").write_text(model_of(gated, 'tokens("tokens.bin")').replace("class[19]", "class[3000]").replace("model {", layer))
    done = mtc(tmp_path / "m.mt", "--emit=cu", "--arch", "sm_90a", "--precision", "bf16", "-o", tmp_path / "m.cu")
    assert done.returncode == 0, done.stderr
    launches = (tmp_path / "m.cu").read_text().split("// ---- decoding")[1].split("\n// phase ")
    keeping = [launch for launch in launches if "keep_row(kept, row, 256);" in launch]
    assert len(keeping) == 1
    row, first = re.search(r"(\w+) \*kept = own\.(\w+);\n +own\.\2 = row;", keeping[0]).group(2), keeping[0].index("const bool keeps = tile == 0;")
    assert first < keeping[0].index("compute_row = ") and f"t.{row}" in "".join(launches)


def test_what_the_end_of_a_tokens_row_reads_is_read_at_its_start(mtc, tmp_path):
    """What no launch writes ahead of the gate, the rest behind it; both before the sum."""
    decoding = decoding_of(mtc, tmp_path)
    lines = ("float h_bias = t.h_bias[i];", "gate();", "float x_weight = t.x_weight[token(batch) * X_COLUMNS + i];",
             "float a_sum = 0;", "t.decode_h[i] = x_weight + (a_sum + h_bias);")
    kernel = decoding[decoding.index("struct decode_h {"):]
    places = [kernel.index(line) for line in lines]
    assert places == sorted(places)


def test_loops_of_a_token_say_how_often_they_go_round(mtc, tmp_path):
    """All their loads are on their way at a time then. 3000 scores are 11 rounds of a block, or 12."""
    decoding = decoding_of(mtc, tmp_path)
    assert "for (int j = team.first; j < team.first + X_COLUMNS; j += team.stride)" in decoding
    assert "for (int j = team.first; j < LOGITS_COLUMNS; j += team.stride)" in decoding


def wide_decoding(mtc, folder, middle, precision):
    """As decoding_of, with so many numbers in the middle."""
    (folder / "m.mt").write_text(model_of(WIDE.replace("1024", str(middle)), 'tokens("tokens.bin")').replace("class[19]", "class[3000]"))
    done = mtc(folder / "m.mt", "--emit=cu", "--arch", "sm_90a", "--precision", precision, "-o", folder / "m.cu")
    assert done.returncode == 0, done.stderr
    return (folder / "m.cu").read_text().split("// ---- decoding")[1]


@pytest.mark.parametrize("middle, team", [(1056, "Warp"), (2112, "Several<Warp, 2>"), (2120, "Warp"), (3168, "Several<Warp, 3>")])
def test_a_block_of_a_token_has_several_sums_at_a_time(middle, team, mtc, tmp_path):
    """An H200 has 132 multiprocessors, and 1056 rows of a warp each are a block for each. 2120 come out even in 53 blocks alone; long rows,
    256 of them, are two for each block."""
    decoding = wide_decoding(mtc, tmp_path, middle, "bf16")
    assert f"divide_up(M_1_SIZE, {team}::rows);" in decoding
    assert f"bring_rows<{team}>(own.decode_m_1_weight_bf16," in decoding
    assert re.search(r"Several<Whole, 2> team\(shared\);\n +int i = tile \* Several<Whole, 2>::rows \+ team.row;", decoding)
    assert re.search(r"_sum = rows_sum<float, M_1_SIZE, \d>\(team, i, add\);", decoding)


def test_a_block_of_a_token_has_several_sums_of_integers_too(mtc, tmp_path):
    decoding = wide_decoding(mtc, tmp_path, 2112, "int8")
    assert "bring_rows<Several<Warp, 2>>(own.m_1_weight," in decoding
    assert re.search(r"int &(\w+)\) \{(?:\n +Pack<signed char, 4> [^;]*;){2}\n +\1 = add_products\(\w+, m_1_weight, \1\);\n +\};\n +float \1 = \(float\)rows_sum<int, ", decoding)


@pytest.mark.parametrize("middle, team", [(16896, "Several<Warp, 12>"), (17600, "Several<Warp, 11>")])
def test_blocks_of_more_rows_than_multiprocessors_could_have_at_a_time_have_many(middle, team, mtc, tmp_path):
    assert f"divide_up(M_1_SIZE, {team}::rows);" in wide_decoding(mtc, tmp_path, middle, "bf16")


def texts_of(mtc, folder, *flags):
    """What a GPU runs for a token of each of several texts of the wide model."""
    decoding_of(mtc, folder, "--decode-batch", "24", *flags)
    return (folder / "m.cu").read_text().split("// ---- decoding several texts")[1]


def test_texts_read_copies_of_weights_in_16_bits(mtc, tmp_path):
    """Of all products, which are all that is made where a text begins."""
    texts = texts_of(mtc, tmp_path, "--precision", "bf16")
    assert "texts_graphs.decode<Texts, " in texts and "texts_graphs.decode<Texts>" in texts_of(mtc, tmp_path)
    schedule = mtc(tmp_path / "m.mt", "--emit=schedule", "--arch", "sm_90a", "--precision", "bf16", "--decode-batch", "24")
    first = schedule.stdout.split("\ntexts: ")[1].split("phase 2:")[0].split("phase 1:")[1]
    assert first.count("  last_") == len(re.findall(r"^    \w", first, re.M)) == 7


def test_products_of_few_texts_have_tiles_of_all_rows(mtc, tmp_path):
    """Where weights are in 16 bits, and there ahead of the gate. With more texts than 64, other tiles are as good."""
    assert ", true>;" in re.search(r"= FewTile<.*", texts_of(mtc, tmp_path, "--precision", "bf16"))[0]
    for precision, count, tiles in (("fp16", 24, 7), ("bf16", 64, 7), ("bf16", 96, 0), ("fp32", 24, 0)):
        flags = ("--emit=schedule", "--arch", "sm_90a", "--precision", precision, "--decode-batch", count)
        texts = mtc(tmp_path / "m.mt", *flags).stdout.split("\ntexts: ")[1].split("\nprefill")[0]
        assert texts.count("16 columns a warp") == tiles


def test_attention_of_texts_leaves_what_products_read(mtc, tmp_path):
    """The result is rounded where it is made; where texts have many heads, each is one block's."""
    texts_of(mtc, tmp_path, "--precision", "bf16")
    flags = ("--emit=schedule", "--arch", "sm_90a", "--precision", "bf16", "--decode-batch", "128")
    texts = mtc(tmp_path / "m.mt", *flags).stdout.split("\ntexts: ")[1]
    assert re.search(r" 512 tiles .* attend_step\n  phase \d+: \d+ tiles\n    h  .* tile ", texts)


def test_long_scores_of_texts_are_folded_in_pieces(mtc, tmp_path):
    """As those of one text are, what is left over beside them; shorter ones are a block's for each text."""
    texts_of(mtc, tmp_path)
    flags = ("--emit=schedule", "--arch", "sm_90a", "--decode-batch", "24")
    last = mtc(tmp_path / "m.mt", *flags).stdout.split("\ntexts: ")[1].split("\nprefill")[0]
    assert " 24 rows, a block each" in last.split("output_prediction")[1] and "partial" not in last
    (tmp_path / "m.mt").write_text((tmp_path / "m.mt").read_text().replace("3000", "9000"))
    last = mtc(tmp_path / "m.mt", *flags).stdout.split("\ntexts: ")[1].split("\nprefill")[0]
    assert last.count("840 rows, a warp each") == 2 and "216000 rows, a thread each" in last.split("output_prediction")[1]


# ---- text ----


@pytest.fixture(scope="module")
def trained(compile_model, input_text):
    """The program of a trained model, and its weights."""
    program = compile_model(model_of(MODELS["two_layers"], TEXT))
    weights = input_text / "w.safetensors"
    program("--data", input_text, "--epochs", "3", "--save", weights, "--quiet")
    return program, weights


def generate(trained, *flags, code=0):
    program, weights = trained
    done = program("generate", "--load", weights, *flags, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


def greedy(model, tokens, count):
    """A full window slides by half of the context: its last tokens are seen from position 0 on."""
    begin = 0
    for _ in range(count):
        if len(tokens) - begin > T:
            begin = len(tokens) - 1 - T // 2
        tokens = [*tokens, int(model.predictions(tokens[begin:])[-1][:len(CHARACTERS)].argmax())]
    return tokens


CHARACTERS = sorted(set("abc dé fgh ij klmno pq\n"))


def test_greedy_text_is_that_of_repeated_predictions(trained, input_text, mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS["two_layers"], TEXT))
    model.call("load", str(trained[1]).encode())
    prompt = "abc d"
    expected = greedy(model, [CHARACTERS.index(c) for c in prompt], 40)
    shown = generate(trained, "--prompt", prompt, "--tokens", "40", "--temperature", "0")
    assert shown.removesuffix("\n") == "".join(CHARACTERS[token] for token in expected).removesuffix("\n")


def test_seeds_reproduce_and_differ(trained):
    texts = [generate(trained, "--prompt", "fg", "--tokens", "60", "--seed", seed) for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    assert texts[0].startswith("fg") and len(texts[0].removesuffix("\n")) in (61, 62)


def test_one_likeliest_token_is_greedy(trained):
    greedy_text = generate(trained, "--prompt", "ij", "--temperature", "0", "--tokens", "30")
    assert generate(trained, "--prompt", "ij", "--top-k", "1", "--tokens", "30") == greedy_text
    assert generate(trained, "--prompt", "ij", "--top-p", "1e-9", "--tokens", "30") == greedy_text


@pytest.mark.gpu
@pytest.mark.parametrize("flags", [(), ("--temperature", "0"), ("--batch", "3"), ("--top-k", "3"),
                                   ("--temperature", "0.7", "--repetition-penalty", "1.3"), ("--stop", "a")])
def test_gpu_draws_what_the_cpu_does(flags, trained, compile_model):
    program = compile_model(model_of(MODELS["two_layers"], TEXT), target="cuda")
    how = ("--prompt", "abc d", "--tokens", "70", "--seed", "3", *flags)
    assert generate((program, trained[1]), *how) == generate(trained, *how)


@pytest.fixture(scope="module")
def together(compile_model):
    """The same model, of which four texts are decoded at a time."""
    return compile_model(model_of(MODELS["two_layers"], TEXT), "--decode-batch", "4")


@pytest.mark.parametrize("flags", [(), ("--temperature", "0"), ("--top-k", "3"), ("--stop", "a"), ("--stop", "fg", "--stop", "é"),
                                   ("--temperature", "0.7", "--repetition-penalty", "1.3"), ("--beams", "8", "--repetition-penalty", "1.2")])
def test_texts_are_the_same_together(flags, trained, together):
    """Those of a full window and behind it too; seven are four and three."""
    how = ("--prompt", "abc d", "--tokens", "40", "--seed", "3", "--batch", "7", *flags)
    assert generate((together, trained[1]), *how) == generate(trained, *how)


def test_a_program_says_how_texts_are_made_together(trained, together, mtc):
    how = ("--prompt", "ab", "--tokens", "3", "--batch", "5")
    said = [program("generate", "--load", trained[1], *how).stderr for program in (trained[0], together)]
    assert "these texts were made one after the other; several at a time: mtc" in said[0] and "--decode-batch 5" in said[0]
    assert said[1].startswith("15 tokens in ") and "--decode-batch" not in said[1]
    refused = mtc(ROOT / "models/mnist.mt", "--decode-batch", "2", "--emit=plan")
    assert refused.returncode == USAGE and "--decode-batch is of models that generate text, which" in refused.stderr


NAMELESS = """data {
  train = text("input.txt", level = "char")
  c : class[70][25]
}
model {
  h = gather(weight([70, 16], normal(0, 1), name = "wte"), slice(c, 0, 0, 24))
  s = attention(h, h, h, heads = 2, causal = true)
  logits = linear(s, 70)
}
train {
  loss = cross_entropy(logits, slice(c, 0, 1, 25))
  optimizer = adam(1e-3)
  batch = 4
}
"""


def test_tokens_that_the_model_gives_no_name(mtc, tmp_path):
    """They lie in the plan under the operator's, where mtc looked for that of a kernel that makes them."""
    (tmp_path / "m.mt").write_text(NAMELESS)
    done = mtc(tmp_path / "m.mt", "--decode-batch", "3", "--emit=plan")
    assert done.returncode == 0, done.stderr
    assert re.search(r" i32\[3, 1\] .* texts_tokens\b", done.stdout)


@pytest.mark.gpu
@pytest.mark.parametrize("flags", [(), ("--temperature", "0"), ("--top-k", "3"), ("--temperature", "0.7", "--repetition-penalty", "1.3")])
def test_gpu_draws_texts_together(flags, trained, compile_model):
    program = compile_model(model_of(MODELS["two_layers"], TEXT), "--decode-batch", "4", target="cuda")
    how = ("--prompt", "abc d", "--tokens", "70", "--seed", "3", "--batch", "7", *flags)
    assert generate((program, trained[1]), *how) == generate(trained, *how)


def test_without_a_prompt_text_begins_behind_a_line_end(trained):
    flags = ("--tokens", "20", "--seed", "4")
    assert generate(trained, *flags) == generate(trained, "--prompt", "", *flags)
    assert generate(trained, "--prompt", "\n", *flags).endswith(generate(trained, *flags))


def test_a_full_context_begins_again_with_its_half(trained):
    assert generate(trained, "--prompt", "abc dé fgh i", "--tokens", "1").startswith("abc dé fgh i")
    assert len(generate(trained, "--prompt", "abc", "--tokens", "100").removesuffix("\n")) >= 102


@pytest.mark.parametrize("flags, message", [
    (("--prompt", "abcZ"), "prompt:1:4: 'Z' is none of the"),
    (("--prompt", "abc abc abc abc"), "the prompt has 15 tokens, the model sees 12 at most"),
    (("--temperature", "-0.5"), "--temperature is at least 0, not -0.5"),
    (("--temperature", "warm"), "--temperature needs a number, not 'warm'"),
    (("--temperature", "nan"), "--temperature needs a number, not 'nan'"),
    (("--temperature", "inf"), "--temperature needs a number, not 'inf'"),
    (("--top-p", "0"), "--top-p is above 0 and at most 1, not 0"),
    (("--top-p", "1.5"), "--top-p is above 0 and at most 1, not 1.5"),
    (("--top-k", "-1"), "--top-k is from 0 to"),
    (("--tokens", "0"), "--tokens is from 1 to"),
])
def test_bad_flags(flags, message, trained):
    code = BAD_DATA if "is none of" in message else USAGE
    assert message in generate(trained, *flags, code=code)


def test_weights_are_needed(trained):
    done = trained[0]("generate", check=False)
    assert done.returncode == USAGE and "generate needs trained weights: --load FILE" in done.stderr


def test_scores_that_overflow(trained, mtc, tmp_path):
    model = library(mtc, tmp_path, model_of(MODELS["two_layers"], TEXT))
    model.call("load", str(trained[1]).encode())
    model.set("logits.weight", np.full((V, 24), 3e38))
    model.call("save", str(tmp_path / "large").encode())
    message = generate((trained[0], tmp_path / "large"), "--prompt", "ab", code=BAD_DATA)
    assert "the scores of token 2 are not finite: the weights have diverged or are damaged" in message


def test_bytes_of_a_character_stay_together(compile_model, tmp_path):
    """A model of bytes that has learned one line by heart."""
    (tmp_path / "input.txt").write_text("größe ☃ 𝄞 " * 60)
    layers = MODELS["attention"].replace("19", "256")
    model = model_of(layers, 'text("input.txt", level = "byte")').replace("class[19]", "class[256]").replace("1e-3", "1e-2")
    program = compile_model(model)
    program("--data", tmp_path, "--epochs", "30", "--save", tmp_path / "w", "--quiet")
    done = program("generate", "--load", tmp_path / "w", "--prompt", "größe", "--tokens", "40", "--temperature", "0")
    assert done.stdout.startswith("größe ☃ 𝄞 größe ☃")


def test_numbers_as_tokens(compile_model, tmp_path):
    np.array([3, 1, 4, 1, 5] * 60, np.uint16).tofile(tmp_path / "tokens.bin")
    program = compile_model(model_of(MODELS["embedding"], 'tokens("tokens.bin")'))
    program("--data", tmp_path, "--epochs", "1", "--save", tmp_path / "w", "--quiet")
    done = program("generate", "--load", tmp_path / "w", "--prompt", "3 1 4", "--tokens", "5")
    numbers = [int(word) for word in done.stdout.split()]
    assert numbers[:3] == [3, 1, 4] and len(numbers) == 8 and max(numbers) < V
    refused = program("generate", "--load", tmp_path / "w", check=False)
    assert refused.returncode == USAGE and "this model needs a beginning: --prompt" in refused.stderr


# ---- samples during training ----


@pytest.fixture(scope="module")
def reciting(compile_model, tmp_path_factory):
    """A model of a tokenizer's numbers that has learned one line by heart."""
    folder = tmp_path_factory.mktemp("reciting")
    (folder / "input.txt").write_text("größe ☃ Hello world, " * 200)
    tokenizer = bpe.Tokenizer(bpe.learn((folder / "input.txt").read_bytes(), 20), added=["<|end|>"])
    tokenizer.save(folder / "tokenizer.json")
    mtc_tokens(folder, "input.txt", "--tokenizer", "tokenizer.json", "-o", "tokens.bin")
    model = model_of(MODELS["attention"].replace("19", "280"), 'tokens("tokens.bin")')
    program = compile_model(model.replace("class[19]", "class[280]").replace("1e-3", "1e-2"))
    program("--data", folder, "--epochs", "20", "--save", folder / "w", "--quiet")
    return program, folder


def mtc_tokens(folder, *args):
    subprocess.run([MTC, "tokens", *args], cwd=folder, check=True, capture_output=True)


def test_text_in_the_words_of_a_tokenizer(reciting):
    program, folder = reciting
    done = program("generate", "--load", folder / "w", "--tokenizer", folder / "tokenizer.json", "--prompt", "Hello world", "--tokens", "12",
                   "--temperature", "0")
    assert done.stdout.startswith("Hello world, größe ☃ Hello")
    numbers = program("generate", "--load", folder / "w", "--prompt", "72", "--tokens", "3", "--temperature", "0").stdout
    assert numbers.startswith("72 ")
    done = program("generate", "--load", folder / "w", "--prompt", "Hello", check=False)
    assert done.returncode == BAD_DATA and "found 'Hello'" in done.stderr and "of generate, --tokenizer FILE" in done.stderr


def test_tokenizers_that_are_not_the_model_s(reciting, trained):
    program, folder = reciting
    bpe.Tokenizer(bpe.learn((folder / "input.txt").read_bytes() + bytes(range(256)) * 3, 60)).save(folder / "larger.json")
    done = program("generate", "--load", folder / "w", "--tokenizer", folder / "larger.json", "--prompt", "a", check=False)
    assert done.returncode == USAGE and "has the tokens 0 to 315, this model 0 to 279: it learned others" in done.stderr
    done = program("generate", "--load", folder / "w", "--tokenizer", folder / "none.json", "--prompt", "a", check=False)
    assert done.returncode == NO_INPUT and "none.json: cannot open" in done.stderr
    message = generate(trained, "--tokenizer", folder / "tokenizer.json", code=USAGE)
    assert "--tokenizer says what tokens are that come as numbers, tokens(...); this model's are characters" in message


@pytest.fixture(scope="module")
def of_pieces(compile_model, reciting, tmp_path_factory):
    """The same of the text itself, whose tokens are made when it is read."""
    folder = tmp_path_factory.mktemp("pieces")
    for name in ("input.txt", "tokenizer.json"):
        (folder / name).write_bytes((reciting[1] / name).read_bytes())
    model = model_of(MODELS["attention"].replace("19", "280"), 'text("input.txt", level = "bpe", tokenizer = "tokenizer.json")')
    program = compile_model(model.replace("class[19]", "class[280]").replace("1e-3", "1e-2"))
    program("--data", folder, "--epochs", "20", "--save", folder / "w", "--quiet")
    return program, folder


def recited(program, folder, *flags, check=True):
    return program("generate", "--load", folder / "w", "--tokens", "12", "--temperature", "0", *flags, check=check)


def test_a_text_is_the_tokens_of_its_tokenizer(of_pieces, reciting, monkeypatch):
    """As of the file that mtc tokens writes: the same weights; text goes in and comes out, also what is no UTF-8."""
    program, folder = of_pieces
    made, other = (unpack((at / "w").read_bytes()) for at in (folder, reciting[1]))
    assert made[1] == other[1]
    kept = json.loads(made[0]["__metadata__"]["mtc.encoding"])["window"]
    assert kept["tokenizer"] == "tokenizer.json" and len(kept["digest"]) == 16
    assert f"tokens of tokenizer.json, whose digest is {kept['digest']}" in program("info", folder / "w").stdout
    monkeypatch.setenv("MTC_DATA_DIR", str(folder))
    assert recited(program, folder, "--prompt", "Hello world").stdout.startswith("Hello world, größe ☃ Hello")
    bytes_of = subprocess.run([program.path, "generate", "--load", folder / "w", "--tokens", "2", "--prompt", b"Hello\xff w"], capture_output=True)
    assert bytes_of.stdout.startswith(b"Hello\xff w") and bytes_of.returncode == 0


def test_weights_have_one_tokenizer(of_pieces, tmp_path):
    """However its file is written; another one is refused wherever tokens are made, with both by name."""
    program, folder = of_pieces
    document = json.loads((folder / "tokenizer.json").read_text())
    (tmp_path / "same.json").write_text(json.dumps(document, indent=3))
    assert recited(program, folder, "--tokenizer", tmp_path / "same.json", "--prompt", "Hello world").stdout.startswith("Hello world, größe")
    document["model"]["merges"].pop()
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    (tmp_path / "input.txt").write_bytes((folder / "input.txt").read_bytes())
    for done in (recited(program, folder, "--tokenizer", tmp_path / "tokenizer.json", "--prompt", "a", check=False),
                 program("--data", tmp_path, "--resume", folder / "w", "--epochs", "30", check=False),
                 program("predict", "--data", tmp_path, "--load", folder / "w", "--input", tmp_path / "input.txt", check=False)):
        assert done.returncode == BAD_DATA and "is not the tokenizer that the weights have learned with" in done.stderr
        assert "that of tokenizer.json was" in done.stderr and "bring back tokenizer.json, or train anew" in done.stderr
    document["added_tokens"].append({**document["added_tokens"][0], "id": 300, "content": "<|more|>"})
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    done = program("--data", tmp_path, "--epochs", "1", check=False)
    assert "tokenizer.json: has 301 tokens, and 'window' is class[280][13]" in done.stderr
    done = recited(program, folder, "--prompt", "a", check=False)
    assert done.returncode == NO_INPUT and "--tokenizer FILE says where it is" in done.stderr


def test_samples_change_nothing_but_what_is_shown(trained, input_text, tmp_path):
    program, weights = trained
    flags = ("--data", input_text, "--epochs", "3")
    shown = program(*flags, "--save", tmp_path / "w", "--sample", "30", "--sample-prompt", "abc").stdout
    assert (tmp_path / "w").read_bytes() == weights.read_bytes()
    last = generate(trained, "--prompt", "abc", "--tokens", "30", "--seed", "0")
    assert shown.count("abc") >= 3 and last in shown


@pytest.mark.parametrize("flags, message", [
    (("--sample", "5", "--sample-prompt", "Z"), "prompt:1:1: 'Z' is none of the"),
    (("--sample-prompt", "a"), "--sample-prompt needs --sample N"),
    (("--sample", "0"), "--sample is from 1 to"),
])
def test_bad_samples(flags, message, trained, input_text):
    done = trained[0]("--data", input_text, *flags, check=False)
    assert done.returncode in (USAGE, BAD_DATA) and message in done.stderr and "epoch" not in done.stdout


def test_no_samples_of_other_models(compile_model):
    done = compile_model(ROOT / "models/xor.mt")("--sample", "5", check=False)
    assert done.returncode == USAGE and "generates no text: its data are not windows of tokens" in done.stderr


# ---- models that generate no text ----

REASONS = {
    "logits = linear(embedding(seen, 19, 4) + mean(embedding(seen, 19, 4), 0), 19)": "needs those at others",
    "x = embedding(seen, 19, 8)\n  logits = linear(attention(x, x, x, heads = 2), 19)": "needs those at others",
    "x = embedding(seen, 19, 4)\n  logits = linear(pad(slice(x, 0, 1, T), 0, after = 1), 19)": "needs those at others",
    "logits = linear(flip(embedding(seen, 19, 4), axis = 0), 19)": "flip: the value at one position needs those at others",
    "x = embedding(slice(window, 0, 1, T + 1), 19, 4)\n  logits = linear(x, 19)": "reads token p + 1 of 'window'",
    "w = weight([T, T])\n  logits = linear(matmul(w, embedding(seen, 19, 4)), 19)": "needs those at others",
    # three examples of three rows: their rows are as many as the examples times the rows before an axis of [12, 4]
    "x = reshape(embedding(seen, 19, 4), [3, 4, 4]) + weight([3, 4, 4])\n  logits = linear(reshape(x, [T, 4]), 19)": "needs those at others",
}


@pytest.mark.parametrize("layers", REASONS)
def test_models_that_generate_no_text(layers, mtc, tmp_path):
    (tmp_path / "m.mt").write_text(model_of("  " + layers, TEXT))
    done = mtc(tmp_path / "m.mt", "--emit=c")
    assert done.returncode == 0, done.stderr
    reason = next(line for line in done.stdout.splitlines() if ".no_decode" in line)
    assert REASONS[layers] in reason and "m.mt:" in reason
    assert "decode_phases" not in done.stdout


def test_the_program_says_why(compile_model, tmp_path, input_text):
    program = compile_model(model_of("  logits = linear(embedding(seen, 19, 4) + mean(embedding(seen, 19, 4), 0), 19)", TEXT))
    done = program("generate", "--load", tmp_path / "none", check=False)
    assert done.returncode == USAGE
    assert "generates no text: " in done.stderr and ":9: sum: the value at one position needs those at others" in done.stderr
    program = compile_model(ROOT / "models/xor.mt")
    done = program("generate", "--load", tmp_path / "none", check=False)
    assert done.returncode == USAGE and "its data are not windows of tokens" in done.stderr


# ---- the choice of a token ----


@pytest.fixture(scope="module")
def sampler(tmp_path_factory):
    path = tmp_path_factory.mktemp("sample") / "sample.so"
    subprocess.run(["cc", "-std=c11", "-D_XOPEN_SOURCE=700", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
                    f"-I{ROOT}/runtime", f"-I{ROOT}/kernels_lib", ROOT / "tests/runtime/sample_test.c", ROOT / "runtime/commands/sample.c",
                    ROOT / "runtime/base/common.c", "-o", path, "-lm"], check=True)
    function = ctypes.CDLL(str(path)).samples

    def sample(scores, draws, text=0, **how):
        scores, out = np.ascontiguousarray(scores, float), np.empty(draws, np.int64)
        sampling = Sampling(**{"temperature": 1.0, "top_p": 1.0, "repetition_penalty": 1.0, "seed": 1, **how})
        function(ctypes.byref(sampling), pointer(scores), ctypes.c_int64(len(scores)), ctypes.c_uint64(text), ctypes.c_int64(draws), pointer(out))
        return out

    return sample


def distribution(scores, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The rules in their order, each on what those before it leave."""
    order = np.argsort(-scores, kind="stable")[:top_k or None]
    p = np.exp((scores[order] - scores.max()) / temperature)
    p /= p.sum()
    kept = np.searchsorted(np.cumsum(p), top_p * (1 - 1e-12)) + 1 if top_p < 1 else len(p)
    p = p[:kept] * (p[:kept] >= min_p * p[0])
    out = np.zeros(len(scores))
    out[order[:kept]] = p / p.sum()
    return out


SCORES = np.array([0.3, -1.0, 2.0, 2.0, -4.0, 0.9, 1.5, -0.2])


@pytest.mark.parametrize("how", [{}, {"temperature": 0.5}, {"temperature": 3.0}, {"top_k": 3}, {"top_p": 0.7}, {"top_k": 100},
                                 {"top_k": 5, "top_p": 0.8, "temperature": 1.5}, {"top_p": 0.01}, {"top_k": 1}, {"min_p": 0.3}, {"min_p": 1.0},
                                 {"min_p": 0.2, "temperature": 2.0}, {"top_k": 6, "top_p": 0.9, "min_p": 0.35, "temperature": 1.5}], ids=str)
def test_frequencies(how, sampler):
    draws, expected = 200_000, distribution(SCORES, **how)
    found = np.bincount(sampler(SCORES, draws, **how), minlength=len(SCORES)) / draws
    assert ((found > 0) <= (expected > 0)).all()
    assert np.abs(found - expected).max() < 4 * np.sqrt(0.25 / draws)


def test_each_text_has_draws_of_its_own(sampler):
    first, again, other = (sampler(SCORES, 1000, text=text) for text in (3, 3, 4))
    assert (first == again).all() and 0.1 < (first == other).mean() < 0.4  # as of two that know nothing of each other: 0.22


@pytest.mark.parametrize("top_p, kept", [(0.25, [0]), (0.5, [0, 1]), (0.75, [0, 1, 2])])
def test_top_p_that_is_met_exactly(top_p, kept, sampler):
    """Four tokens of a quarter each: those that make the part, and none beyond."""
    assert sorted(set(sampler(np.zeros(4), 1000, top_p=top_p))) == kept


def test_temperature_zero_takes_the_first_of_the_highest(sampler):
    assert (sampler(SCORES, 50, temperature=0) == 2).all()


def test_draws_are_those_of_their_seed(sampler):
    first, again, other = (sampler(SCORES, 100, seed=seed) for seed in (7, 7, 8))
    assert (first == again).all() and (first != other).any()


def test_impossible_tokens_are_never_drawn(sampler):
    scores = np.array([-np.inf, 0.0, -np.inf, 1.0, -np.inf])
    assert set(sampler(scores, 2000)) == {1, 3}
    assert set(sampler(scores, 2000, top_k=4)) == {1, 3}


@pytest.mark.parametrize("scores", [[0, np.nan, 1], [np.inf, 0], [-np.inf, -np.inf]])
def test_scores_that_are_no_numbers(scores, sampler):
    assert (sampler(scores, 3) == -1).all()


@pytest.mark.quick
@pytest.mark.parametrize("batch", [1, 2, 8])
@pytest.mark.parametrize("model", ["gpt2", "llama_tiny"])
def test_calls_of_narrow_operands_are_rounded_already(mtc, tmp_path, model, batch):
    """Few texts at a time ask for attention of keys that are stored in bf16: there was no end to what was rounded for it."""
    done = mtc(ROOT / f"models/{model}.mt", "--decode-batch", batch, "--target", "cuda", "--arch", "sm_90", "--emit=cu", "-o", tmp_path / "x.cu")
    assert done.returncode == 0 and "texts_" in (tmp_path / "x.cu").read_text()
