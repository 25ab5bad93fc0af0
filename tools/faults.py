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
    Fault("compiler/emit/text/index.c", "<= INT32_MAX)", "<= UINT32_MAX)", "test_limits.py -k offsets"),
    Fault("compiler/emit/kernel/loop.c", "    if (may_not_exist)\n        depend_on_row(&element, row);\n", "    (void)may_not_exist;\n",
          "test_batch_norm.py -k without_a_column"),
    Fault("compiler/emit/text/index.c", '"(int64_t)%s"', '"%s"', "test_limits.py -k offsets"),
    Fault("compiler/op/reduce.c", "divide(g, dy, count)", "(count ? dy : NULL)", "test_images.py -k extremes"),
    Fault("compiler/op/activation.c", 'compare(g, "gt", n, 0), dy', 'compare(g, "ge", n, 0), dy', "test_golden.py"),
    Fault("compiler/op/optimizer.c", "direction = o->flag ? add", "direction = !o->flag ? add", "test_training.py -k sgd"),
    Fault("compiler/op/optimizer.c", '"m", o->arg[LION_BETA2]', '"m", o->arg[LION_BETA1]', "test_training.py -k lion"),
    Fault("compiler/op/loss.c", "const double lowest = -100;", "const double lowest = -50;", "test_ops_graph.py -k bce"),
    Fault("compiler/op/arithmetic.c", '*first = op2(g, "ge"', '*first = op2(g, "gt"', "test_images.py -k equal_operands"),
    Fault("compiler/op/schedule.c", "this_step(g), -0.5)", "this_step(g), 0.5)", "test_training.py -k step"),
    Fault("compiler/pass/update.c", "graph_constant(g, 1e-6)", "graph_constant(g, 1e-3)", "test_training.py -k clip"),
    Fault("compiler/pass/update.c", "due, graph_constant(g, 0), sum)", "due, sum, sum)", "test_training.py -k accum"),
    Fault("compiler/plan/place.c", "a->first <= b->last &&", "a->first < b->last &&", "test_plan.py"),
    Fault("compiler/plan/liveness.c", "last = program->phases.count - 1;", "last = kernel->phase;", "test_golden.py test_plan.py"),
    Fault("compiler/plan/liveness.c", "return stored && !last->reduces.count &&", "return stored &&", "test_golden.py test_plan.py"),
    Fault("compiler/front/check.c", "if (i == MAX_PARAMS)", "if (i + 1 == MAX_PARAMS)", "test_limits.py -k params"),
    Fault("compiler/front/check.c", "p->value > p->high)", "p->value >= p->high)", "test_limits.py -k params"),
    Fault("compiler/op/pool.c", "pad > sweeps->axis[k].kernel", "pad >= sweeps->axis[k].kernel", "test_limits.py -k half"),
    Fault("compiler/pass/precision.c", "LEAST_EXTENT = 16", "LEAST_EXTENT = 32", "test_golden.py test_passes.py"),
    Fault("compiler/emit/build/cache.c", "memcmp(entry->bytes, right, DIGEST_LENGTH) == 0", "right != NULL", "test_cli.py -k damaged"),
    Fault("compiler/emit/build/cache.c", "    sha256_add_string(&hash, key);\n", "    (void)key;\n", "test_cli.py -k exchanged"),
    Fault("compiler/emit/build/cache.c", "O_RDONLY | O_NONBLOCK", "O_RDONLY", "test_cli.py -k fifo --limit 20"),
    Fault("compiler/emit/build/nvcc.c", "return gpu_architectures(arena)\n               ? NULL", "return arena\n               ? NULL", "test_cli.py -k no_gpu"),
    Fault("compiler/plot/scale.c", "step >= 1e3 ?", "step >= 1e4 ?", "test_plot.py"),
    Fault("compiler/op/conv.c", "j < sweep[1].stride; j++)", "j < 1; j++)", "test_ops_graph.py -k conv"),
    Fault("compiler/op/rewrites.c", "step != a->shape.dim[k] || along >= 0", "along >= 0", "test_ops_graph.py test_attention.py -k 'concat or packed'"),
]

RUNTIME = [
    Fault("runtime/checkpoint/keeper.c", '{"h", 3600}', '{"h", 360}', "test_checkpoint.py -k 'save_every or interval'"),
    Fault("runtime/data/npy.c", "array->big_endian = descr[1] == '>';", "array->big_endian = false;", "test_predict.py -k numbers_of_any_type"),
    Fault("runtime/data/idx.c", "| size[1] << 16 |", "|", "test_runtime_data.py"),
    Fault("runtime/base/files.c", "    if (data && *data)\n        try_place(search, data, path);\n    try_cache(search, path);\n",
          "    try_cache(search, path);\n    if (data && *data)\n        try_place(search, data, path);\n", "test_runtime_data.py"),
    Fault("runtime/session/feed.c", " && window->seed == session->seed;", ";", "test_data_on_host.py"),
    Fault("runtime/commands/fit.c", ": value < record->best;", ": value <= record->best;", "test_checkpoint.py -k 'best or patience'"),
    Fault("runtime/commands/fit.c", "fit->enough = fit->patience && record->since_best >= fit->patience;",
          "fit->enough = fit->patience && record->since_best > fit->patience;", "test_checkpoint.py -k patience"),
    Fault("runtime/session/sums.c", "return left < course->batch ? left : course->batch;", "return left < 0 ? left : course->batch;", "test_runtime_train.py"),
    Fault("runtime/session/evaluate.c", "(double)(left < batch ? left : batch);", "(double)(left < 0 ? left : batch);", "test_runtime_train.py test_runtime_model.py"),
    Fault("runtime/session/init.c", "INIT_STREAM = 1 << 30", "INIT_STREAM = 1 << 29", "test_runtime_model.py -k initial_weights"),
    Fault("runtime/commands/sample.c", "passed < top_p * all", "passed <= top_p * all", "test_generate.py -k 'frequencies or top_p'"),
    Fault("runtime/commands/sample.c", "scores[a] > scores[b] : a < b", "scores[a] > scores[b] : a > b", "test_generate.py -k 'frequencies or top_p'"),
    Fault("runtime/data/table_date.c", "(year % 100 != 0 || year % 400 == 0)", "year % 100 != 0", "test_tables.py -k 'date or day'"),
    Fault("runtime/data/table_date.c", "((day + 3) % 7 + 7) % 7", "((day + 4) % 7 + 7) % 7", "test_tables.py test_sales.py -k 'date or day'"),
    Fault("runtime/data/table_parse.c", "length > LONGEST_WORD", "length >= LONGEST_WORD", "test_tables.py -k longest"),
    Fault("runtime/checkpoint/checkpoint.c", "if (tensor->role != MTC_STATE)", "if (tensor->role == MTC_WEIGHT)", "test_checkpoint.py -k 'finite or nan or diverged'"),
    Fault("runtime/checkpoint/checkpoint.c", '%.17g\\"", key, value);', '%.6g\\"", key, value);', "test_checkpoint.py -k 'best'"),
    Fault("runtime/data/part.c", "end = llround(split->to * (double)count);", "end = (int64_t)(split->to * (double)count);", "test_tables.py test_runtime_data.py -k 'split or part'"),
    Fault("runtime/base/file.c", "(durable && fsync(output->file) != 0)", "false", "test_checkpoint.py -k durable"),
    Fault("runtime/checkpoint/keeper.c", "return written_so && strcmp", "return strcmp", "test_checkpoint.py -k 'numbered or keep or zeros'"),
]

KERNELS = [
    Fault("kernels_lib/random.h", "(int)(element & 1));", "0);", "test_random.py"),
    Fault("kernels_lib/random.h", "MTC_FEWEST_BITS = 8", "MTC_FEWEST_BITS = 4", "test_random.py"),
    Fault("kernels_lib/cpu/bfloat16.h", "bits + 0x7fff + (bits >> 16 & 1)", "bits + 0x8000", "test_kernels_cpu.py -k bf16"),
    Fault("kernels_lib/cpu/math.h", "return a < 0.625f ? p : far;", "return a < 0.9f ? p : far;", "test_kernels_cpu.py -k 'math or tanh or functions'"),
    Fault("kernels_lib/cpu/math.h", "return x < 0 ? 0 : x;", "return x > 0 ? x : 0;", "test_kernels_cpu.py test_ops_compiled.py -k 'relu or nan'"),
    Fault("kernels_lib/cpu/math.h", "float float_max(float a, float b) {\n    return ((a <= b) | (a != a))",
          "float float_max(float a, float b) {\n    return ((a <= b))", "test_kernels_cpu.py"),
]

PYTHON = [
    Fault("python/mtc/training.py", "gain > self.min_delta", "gain >= self.min_delta", "test_python_model.py -k equal_is"),
    Fault("python/mtc/training.py", "stopping.since < rule.patience", "stopping.since <= rule.patience", "test_python_model.py -k early_stopping"),
    Fault("python/mtc/idxfile.py", '0x0C: ">i4"', '0x0C: "<i4"', "test_python_idx.py"),
    Fault("python/mtc/targets.py", "(y < 0) | (y > 1)", "y > 1", "test_python_errors.py test_python_sequential.py -k 'loss or target or bce or takes'"),
    Fault("python/mtc/targets.py", "ROUNDING = 0.01", "ROUNDING = 0.1", "test_python_errors.py test_python_sequential.py -k 'soft_cross'"),
    Fault("python/mtc/scikit.py", "np.where(all_of_it == 0, 1, all_of_it)", "all_of_it", "test_python_estimators.py -k scores"),
    Fault("python/mtc/toolchain.py", 'in ("", "-1", "NoDevFiles")', 'in ("",)', "test_python_errors.py -k hidden"),
]

GPU = [
    Fault("kernels_lib/cuda/gather.cuh", "first = threadIdx.x * each, own = 0, total;\n    __syncthreads();",
          "first = threadIdx.x * each, own = 0, total;", "test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "list.end[row] = begin;\n        begin += count;\n    }\n    __syncthreads();",
          "list.end[row] = begin;\n        begin += count;\n    }", "test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "row, column), sum, is_first);\n        }\n        __syncthreads();",
          "row, column), sum, is_first);\n        }", "test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/gather.cuh", "before = alike & ((1u << lane) - 1);", "before = alike & ((2u << lane) - 1);", "test_gather.py", gpu=True),
    Fault("kernels_lib/cuda/attention_plain.cuh", "query - (key + keys - 1) < Shape::window);", "query - (key + keys - 1) < Shape::window - 2);",
          "test_attention_plain.py test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/attention_plain.cuh", "max(first - Shape::window + 1, 0)", "max(first - Shape::window + 33, 0)",
          "test_attention_plain.py test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/attention_plain.cuh", "first + count - 1 + Shape::window, Shape::length", "first + count - 33 + Shape::window, Shape::length",
          "test_attention_plain.py test_attention_gpu.py", gpu=True),
    Fault("kernels_lib/cuda/math.cuh", "x == x ? bits + 0x7fff + (bits >> 16 & 1) : 0x7fffffff", "x == x ? bits + 0x8000 : 0x7fffffff", "test_math.py test_tensor.py", gpu=True),
    Fault("kernels_lib/cuda/math.cuh", "return exp2_approximate(log2_e * x);", "return exp2_approximate(1.4427f * x);", "test_math.py", gpu=True),
    Fault("kernels_lib/cuda/math.cuh", "return x < 0 ? 0 : x;", "return fmaxf(x, 0);", "test_math.py test_ops_compiled.py", gpu=True),
]

FAULTS = [*COMPILER, *RUNTIME, *KERNELS, *PYTHON, *GPU]
