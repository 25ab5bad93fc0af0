"""Small faults, as a slip of the hand would make them, for tools/plant_faults: the file, the exact text that stands there once,
what stands there instead, and the tests likeliest to see it (arguments of pytest)."""

from typing import NamedTuple


class Fault(NamedTuple):
    path: str
    text: str
    planted: str
    tests: str
    gpu: bool = False


COMPILER = [
    Fault("compiler/emit/text/index.c", "int_holds(most) ? term", "most <= UINT32_MAX ? term", "compiler/test_limits.py -k offsets"),
    Fault("compiler/emit/kernel/loop.c", "    if (may_not_exist)\n        depend_on_row(&element, row);\n", "    (void)may_not_exist;\n",
          "kernels/test_batch_norm.py -k without_a_column"),
    Fault("compiler/ir/tree.c", "return a->wide ? a : tree_as_wide(arena, tree_cast(arena, \"int64_t\", a));", "return a;", "compiler/test_limits.py -k offsets"),
    Fault("compiler/emit/text/index.c", "widened(arena, term, extent(shape, start, first + count - start))", "term", "compiler/test_limits.py -k overflows"),
    Fault("compiler/emit/text/index.c", "int_counts(count) ? counter", "count > 0 ? counter", "compiler/test_limits.py -k 'counters or terms'"),
    Fault("compiler/emit/cuda/product.c", "int_holds(type_elements(&operand->value->type)) ? offset", "offset ? offset", "compiler/test_limits.py -k part"),
    Fault("compiler/op/reduce.c", "divide(g, dy, count)", "(count ? dy : NULL)", "compiler/test_images.py -k extremes"),
    Fault("compiler/op/activation.c", 'compare(g, "gt", n, 0), dy', 'compare(g, "ge", n, 0), dy', "compiler/test_golden.py"),
    Fault("compiler/op/optimizer.c", "direction = o->flag ? add", "direction = !o->flag ? add", "models/test_training.py -k sgd"),
    Fault("compiler/op/optimizer.c", '"m", o->arg[LION_BETA2]', '"m", o->arg[LION_BETA1]', "models/test_training.py -k lion"),
    Fault("compiler/op/loss.c", "const double lowest = -100;", "const double lowest = -50;", "compiler/test_ops_graph.py -k bce"),
    Fault("compiler/op/arithmetic.c", '*first = op2(g, "ge"', '*first = op2(g, "gt"', "compiler/test_images.py -k equal_operands"),
    Fault("compiler/op/schedule.c", "this_step(g), -0.5)", "this_step(g), 0.5)", "models/test_training.py -k step"),
    Fault("compiler/pass/update.c", "graph_constant(g, 1e-6)", "graph_constant(g, 1e-3)", "models/test_training.py -k clip"),
    Fault("compiler/pass/update.c", "due, graph_constant(g, 0), sum)", "due, sum, sum)", "models/test_training.py -k accum"),
    Fault("compiler/plan/place.c", "a->first <= b->last &&", "a->first < b->last &&", "compiler/test_plan.py"),
    Fault("compiler/plan/liveness.c", "last = program->phases.count - 1;", "last = kernel->phase;", "compiler/test_golden.py compiler/test_plan.py"),
    Fault("compiler/plan/liveness.c", "return stored && !last->reduces.count &&", "return stored &&", "compiler/test_golden.py compiler/test_plan.py"),
    Fault("compiler/front/check.c", "if (i == MAX_PARAMS)", "if (i + 1 == MAX_PARAMS)", "compiler/test_limits.py -k params"),
    Fault("compiler/front/check.c", "p->value > p->high)", "p->value >= p->high)", "compiler/test_limits.py -k params"),
    Fault("compiler/front/data.c", "part.in_order = split->manner.text || series_of(data);", "part.in_order = split->manner.text != NULL;",
          "runtime/test_series.py"),
    Fault("compiler/op/augment.c", "1 - strength)", "strength)", "compiler/test_images.py -k jitter"),
    Fault("compiler/op/pool.c", "pad > sweeps->axis[k].kernel", "pad >= sweeps->axis[k].kernel", "compiler/test_limits.py -k half"),
    Fault("compiler/pass/kernel.h", "LEAST_TENSOR_EXTENT = 16", "LEAST_TENSOR_EXTENT = 32", "compiler/test_golden.py compiler/test_passes.py"),
    Fault("compiler/emit/build/cache.c", "memcmp(entry->bytes, right, DIGEST_LENGTH) == 0", "right != NULL", "compiler/test_cli.py -k damaged"),
    Fault("compiler/emit/build/cache.c", "    sha256_add_string(&hash, key);\n", "    (void)key;\n", "compiler/test_cli.py -k exchanged"),
    Fault("compiler/emit/build/cache.c", "O_RDONLY | O_NONBLOCK", "O_RDONLY", "compiler/test_cli.py -k fifo --limit 20"),
    Fault("compiler/emit/build/nvcc.c", "return gpu_architectures(arena)\n               ? NULL", "return arena\n               ? NULL", "compiler/test_cli.py -k no_gpu"),
    Fault("compiler/plot/scale.c", "step >= 1e3 ?", "step >= 1e4 ?", "compiler/test_plot.py"),
    Fault("compiler/op/conv.c", "j < sweep[1].stride; j++)", "j < 1; j++)", "compiler/test_ops_graph.py -k conv"),
    Fault("compiler/op/rewrites.c", "step != a->shape.dim[k] || along >= 0", "along >= 0", "compiler/test_ops_graph.py compiler/test_attention.py -k 'concat or packed'"),
]

RUNTIME = [
    Fault("runtime/checkpoint/keeper.c", '{"h", 3600}', '{"h", 360}', "runtime/test_checkpoint.py -k 'save_every or interval'"),
    Fault("runtime/data/npy.c", "array->big_endian = descr[1] == '>';", "array->big_endian = false;", "runtime/test_predict.py -k numbers_of_any_type"),
    Fault("runtime/data/series.c", "(first + field->from - begin)", "(first + field->from + 0 * begin)", "runtime/test_series.py"),
    Fault("runtime/data/series.c", "window.begin, rows - length, 1, 1", "window.begin, 0, 1, 1", "runtime/test_series.py"),
    Fault("runtime/data/idx.c", "| size[1] << 16 |", "|", "runtime/test_runtime_data.py"),
    Fault("runtime/base/files.c", "    if (data && *data)\n        try_place(search, data, path);\n    try_cache(search, path);\n",
          "    try_cache(search, path);\n    if (data && *data)\n        try_place(search, data, path);\n", "runtime/test_runtime_data.py"),
    Fault("runtime/session/feed.c", " && window->seed == session->seed;", ";", "runtime/test_data_on_host.py"),
    Fault("runtime/session/best.c", ": value < record->best);", ": value <= record->best);", "runtime/test_checkpoint.py -k 'best or patience'"),
    Fault("runtime/commands/fit.c", "fit->enough = fit->patience && fit->session->record.since_best >= fit->patience;",
          "fit->enough = fit->patience && fit->session->record.since_best > fit->patience;", "runtime/test_checkpoint.py -k patience"),
    Fault("runtime/session/sums.c", "return left < course->batch ? left : course->batch;", "return left < 0 ? left : course->batch;", "runtime/test_runtime_train.py"),
    Fault("runtime/session/evaluate.c", "(double)(left < batch ? left : batch);", "(double)(left < 0 ? left : batch);", "runtime/test_runtime_train.py runtime/test_runtime_model.py"),
    Fault("kernels_lib/random.h", "MTC_WEIGHT_STREAM = 1 << 30", "MTC_WEIGHT_STREAM = 1 << 29", "runtime/test_runtime_model.py -k initial_weights"),
    Fault("runtime/commands/sample.c", "passed < top_p * all", "passed <= top_p * all", "runtime/test_generate.py -k 'frequencies or top_p'"),
    Fault("runtime/commands/sample.c", "scores[a] > scores[b] : a < b", "scores[a] > scores[b] : a > b", "runtime/test_generate.py -k 'frequencies or top_p'"),
    Fault("runtime/data/table_date.c", "(year % 100 != 0 || year % 400 == 0)", "year % 100 != 0", "runtime/test_tables.py -k 'date or day'"),
    Fault("runtime/data/table_date.c", "((day + 3) % 7 + 7) % 7", "((day + 4) % 7 + 7) % 7", "runtime/test_tables.py models/test_sales.py -k 'date or day'"),
    Fault("runtime/data/table_parse.c", "length > LONGEST_WORD", "length >= LONGEST_WORD", "runtime/test_tables.py -k longest"),
    Fault("runtime/checkpoint/checkpoint.c", "if (tensor->role != MTC_STATE)", "if (tensor->role == MTC_WEIGHT)", "runtime/test_checkpoint.py -k 'finite or nan or diverged'"),
    Fault("runtime/checkpoint/checkpoint.c", '%.17g\\"", key, value);', '%.6g\\"", key, value);', "runtime/test_checkpoint.py -k 'best'"),
    Fault("runtime/data/part.c", "end = llround(split->to * (double)count);", "end = (int64_t)(split->to * (double)count);", "runtime/test_tables.py runtime/test_runtime_data.py -k 'split or part'"),
    Fault("runtime/base/file.c", "(durable && fsync(output->file) != 0)", "false", "runtime/test_checkpoint.py -k durable"),
    Fault("runtime/checkpoint/keeper.c", "return written_so && strcmp", "return strcmp", "runtime/test_checkpoint.py -k 'numbered or keep or zeros'"),
]

KERNELS = [
    Fault("kernels_lib/random.h", "(int)(element & 1)),", "0),", "kernels/test_random.py"),
    Fault("kernels_lib/random.h", "MTC_FEWEST_BITS = 8", "MTC_FEWEST_BITS = 4", "kernels/test_random.py"),
    Fault("kernels_lib/cpu/recurrent.h", "recur_units(&at, shape->cell, (real)t >= b->length[e]);",
          "recur_units(&at, shape->cell, (real)t > b->length[e]);", "kernels/test_recurrent.py"),
    Fault("kernels_lib/cpu/recurrent.h", "at->state[j] = d * update;", "at->state[j] = d * (1 - update);", "kernels/test_recurrent.py"),
    Fault("kernels_lib/cpu/bfloat16.h", "bits + 0x7fff + (bits >> 16 & 1)", "bits + 0x8000", "kernels/test_kernels_cpu.py -k bf16"),
    Fault("kernels_lib/cpu/math.h", "return a < 0.625f ? p : far;", "return a < 0.9f ? p : far;", "kernels/test_kernels_cpu.py -k 'math or tanh or functions'"),
    Fault("kernels_lib/cpu/math.h", "!(x < 0));", "(x > 0));", "kernels/test_kernels_cpu.py kernels/test_ops_compiled.py -k 'relu or nan'"),
    Fault("kernels_lib/cpu/math.h", "float float_max(float a, float b) {\n    return ((a <= b) | (a != a))",
          "float float_max(float a, float b) {\n    return ((a <= b))", "kernels/test_kernels_cpu.py"),
]

PYTHON = [
    Fault("python/mtc/training.py", "gain > self.min_delta", "gain >= self.min_delta", "python/test_python_model.py -k equal_is"),
    Fault("python/mtc/training.py", "stopping.since < rule.patience", "stopping.since <= rule.patience", "python/test_python_model.py -k early_stopping"),
    Fault("python/mtc/idxfile.py", '0x0C: ">i4"', '0x0C: "<i4"', "python/test_python_idx.py"),
    Fault("python/mtc/targets.py", "(y < 0) | (y > 1)", "y > 1", "python/test_python_errors.py python/test_python_sequential.py -k 'loss or target or bce or takes'"),
    Fault("python/mtc/targets.py", "ROUNDING = 0.01", "ROUNDING = 0.1", "python/test_python_errors.py python/test_python_sequential.py -k 'soft_cross'"),
    Fault("python/mtc/scikit.py", "np.where(all_of_it == 0, 1, all_of_it)", "all_of_it", "python/test_python_estimators.py -k scores"),
    Fault("python/mtc/toolchain.py", 'in ("", "-1", "NoDevFiles")', 'in ("",)', "python/test_python_errors.py -k hidden"),
]

GPU = [
    Fault("kernels_lib/cuda/gather.cuh", "first = threadIdx.x * each, own = 0, total;\n    __syncthreads();",
          "first = threadIdx.x * each, own = 0, total;", "kernels/test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "list.end[row] = begin;\n        begin += count;\n    }\n    __syncthreads();",
          "list.end[row] = begin;\n        begin += count;\n    }", "kernels/test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "row, column), sum, is_first);\n        }\n        __syncthreads();",
          "row, column), sum, is_first);\n        }", "kernels/test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "before = alike & ((1u << lane) - 1);", "before = alike & ((2u << lane) - 1);", "kernels/test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/attention_passing.cuh", "query - (key + keys - 1) < Shape::window);", "query - (key + keys - 1) < Shape::window - 2);",
          "kernels/test_attention_plain.py kernels/test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/attention_passing.cuh", "max(first - Shape::window + 1, 0)", "max(first - Shape::window + 33, 0)",
          "kernels/test_attention_plain.py kernels/test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/attention_passing.cuh", "first + count - 1 + Shape::window, Shape::length", "first + count - 33 + Shape::window, Shape::length",
          "kernels/test_attention_plain.py kernels/test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/bfloat16.cuh", "x == x ? bits + 0x7fff + (bits >> 16 & 1) : 0x7fffffff", "x == x ? bits + 0x8000 : 0x7fffffff", "kernels/test_math.py kernels/test_tensor.py", gpu=True),
    Fault("kernels_lib/cuda/math.cuh", "return exp2_approximate(log2_e * x);", "return exp2_approximate(1.4427f * x);", "kernels/test_math.py", gpu=True),
    Fault("kernels_lib/cuda/math.cuh", "return x < 0 ? 0 : x;", "return fmaxf(x, 0);", "kernels/test_math.py kernels/test_ops_compiled.py", gpu=True),
]

FAULTS = [*COMPILER, *RUNTIME, *KERNELS, *PYTHON, *GPU]
