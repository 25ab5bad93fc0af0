#include "flags.h"

#define SWITCH(name, letter, field, group, help)                                                                       \
    { name, NULL, group, help, offsetof(Options, field), FLAG_SWITCH, 0, letter }
#define VALUE(name, letter, argument, kind, field, group, help)                                                        \
    { name, argument, group, help, offsetof(Options, field), kind, 0, letter }
#define NUMBER(name, letter, argument, field, most, group, help)                                                       \
    { name, argument, group, help, offsetof(Options, field), FLAG_NUMBER, most, letter }
#define CHOICE(name, argument, field, first, group, help)                                                              \
    { name, argument, group, help, offsetof(Options, field), FLAG_CHOICE, first, 0 }

/* "|cuda|cpu": each name is behind a bar. */
static const char target_names[] =
#define TARGET(name, ...) "|" #name
#include "emit/build/targets.def"
#undef TARGET
    ;

/* Behind the stages, the endings of the targets' sources. */
static const char stages[] = "ast|graph|onnx|grad|simple|split|fused|schedule|plan|plan.svg|scaling"
#define TARGET(name, ending, ...) "|" #ending
#include "emit/build/targets.def"
#undef TARGET
    ;

const char OUTPUT[] = "Output", TARGET_FLAGS[] = "Target", MODEL[] = "Model", INFORMATION[] = "Information",
           FORMATTING[] = "Formatting", PLOTTING[] = "Curves of trainings (mtc plot)",
           TOKENS[] = "Tokens of texts (mtc tokens)", WEIGHTS[] = "Weights of PyTorch (mtc weights)",
           IMPORTING[] = "Models of others (mtc import)";

const Flag flags[] = {
    VALUE("--output", 'o', "FILE", FLAG_STRING, output, OUTPUT,
          "the program to write [the model's name]; - with --emit: standard output"),
    CHOICE("--emit", stages, emit, EMIT_AST, OUTPUT, "print a stage of the compilation instead of making a program"),
    SWITCH("--shared", 0, shared, OUTPUT, "make a shared library with the C interface of mtc.h"),
    SWITCH("--predict-only", 0, predict_only, OUTPUT,
           "with --shared: a library of the prediction alone, with the C interface of mtc_net.h, for the cpu target"),
    VALUE("--embed", 0, "FILE", FLAG_STRING, embed, OUTPUT,
          "with --predict-only: weights that the library carries, a file of safetensors"),
    SWITCH("--standalone", 0, standalone, OUTPUT, "put runtime and kernels into the one generated source file"),
    VALUE("--keep", 0, "DIR", FLAG_STRING, keep, OUTPUT, "folder for the generated source [build]"),

    VALUE("--set", 0, "NAME=VALUE", FLAG_SETTING, settings, MODEL, "value of a param of the model"),
    NUMBER("--batch", 0, "N", batch, MAX_BATCH, MODEL, "examples of a step [what the train block says, else 32]"),
    NUMBER("--shards", 0, "N", shards, MAX_SHARDS, MODEL,
           "compute a batch in N equal parts, whose gradients are added up before the update [the batch is computed "
           "whole]"),
    SWITCH("--shard-optimizer", 0, shard_optimizer, MODEL,
           "with --shards: of several processes that share a batch, each keeps the optimizer's states of a part of the "
           "weights, and updates that"),
    NUMBER("--decode-batch", 0, "N", decode_batch, MAX_BATCH, MODEL,
           "of a language model: texts that `generate --batch` decodes at a time [one after the other]"),
    CHOICE("--precision", "fp32|tf32|tf32x3|bf16|fp16|fp8|int8", precision, 1, MODEL,
           "what products are computed in [what the train block says, else fp32]; in int8 a program trains nothing: it "
           "quantizes weights, evaluates, predicts and generates"),
    SWITCH("--recompute", 0, recompute, MODEL,
           "less memory, more time: the backward pass computes again what it can without products; --emit=plan says "
           "how much [what the train block says, else no]"),
    SWITCH("--no-recompute", 0, no_recompute, MODEL, "the backward pass keeps what it needs"),
    CHOICE("--schedule", "auto|graph|persistent", schedule, SCHEDULE_AUTO, MODEL,
           "how a training step is launched: as a CUDA graph, or in one persistent kernel [auto: persistent where each "
           "phase is "
           "a few small tiles and it is estimated faster, else graph; the program's first lines say why]"),

    CHOICE("--target", target_names + 1, target, 1, TARGET_FLAGS,
           "[cuda where a GPU and nvcc are, or --arch or --schedule is given; else cpu]"),
    VALUE("--arch", 0, "LIST", FLAG_STRING, arch, TARGET_FLAGS,
          "GPUs to compile for: native, or a list such as sm_80,sm_90 [the GPU that is present, else a portable list]"),
    VALUE("--link", 0, "LIST", FLAG_STRING, link, TARGET_FLAGS,
          "with --emit=scaling: what joins GPUs, host=N of a host, inside=GB/S and between=GB/S, inside_us=N and "
          "between_us=N of an exchange, meeting_us=N of GPUs in each other's memory "
          "[host=8,inside=300,inside_us=10.4,meeting_us=2.3,between=50,between_us=20]"),
    CHOICE("--real", "f32|f64", real, REAL_F32, TARGET_FLAGS,
           "floating-point type of the cpu target, for gradient checks"),
    NUMBER("--jobs", 'j', "N", jobs, 1024, TARGET_FLAGS, "threads of nvcc [one per processor]"),
    SWITCH("--no-cache", 0, no_cache, TARGET_FLAGS, "compile even when the same program was compiled before"),

    SWITCH("--format", 0, format, FORMATTING, "print the model file in the standard format"),
    SWITCH("--in-place", 'i', in_place, FORMATTING, "with --format: rewrite the file"),
    SWITCH("--check", 0, check, FORMATTING, "with --format: only exit with 1 when the file is not formatted"),

    CHOICE("--x", "step|epoch|seconds", axis, AXIS_STEP, PLOTTING, "what runs along the horizontal axis [step]"),
    VALUE("--title", 0, "TEXT", FLAG_STRING, title, PLOTTING, "the title [the name of the model]"),

    VALUE("--tokenizer", 0, "FILE", FLAG_STRING, tokenizer, TOKENS,
          "tokenizer.json, or vocab.json beside merges.txt: byte-pair encoding, as of GPT-2 and Llama 3"),
    NUMBER("--learn", 0, "N", learn, MTC_MOST_TOKENS, TOKENS, "make a tokenizer of N tokens instead, of the texts"),

    VALUE("--key", 0, "NAME", FLAG_STRING, key, WEIGHTS,
          "the member of a checkpoint that holds the weights: model, or state.model [the one that holds tensors]"),
    VALUE("--rename", 0, "FILE", FLAG_STRING, rename, WEIGHTS,
          "rules for the names, one in a line: layers.*.fc -> h.*.linear"),
    SWITCH("--force", 0, force, IMPORTING, "replace the model and the weights that are there"),
    SWITCH("--flat", 0, flat, IMPORTING, "write each block out, also those that repeat"),

    SWITCH("--summary", 0, summary, INFORMATION, "print layers, shapes, parameters, arithmetic and memory"),
    SWITCH("--operators", 0, operators, INFORMATION, "print the reference of all operators and functions"),
    SWITCH("--json", 0, json, INFORMATION, "with --operators: the functions of the language as JSON, for programs"),
    SWITCH("--verbose", 'v', verbose, INFORMATION, "print the time of each stage and the commands that are run"),
    SWITCH("--list-options", 0, list_options, INFORMATION, "print this list as a table for programs"),
    SWITCH("--version", 0, version, INFORMATION, "print the version"),
    SWITCH("--help", 'h', help, INFORMATION, "print this help"),
};
_Static_assert(sizeof flags / sizeof *flags == FLAGS, "FLAGS counts them");

bool flag_is_of_gradcheck(const Flag *flag) {
    static const size_t fields[] = {offsetof(Options, settings), offsetof(Options, no_cache),
                                    offsetof(Options, verbose), offsetof(Options, help)};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (flag->field == fields[i])
            return true;
    return false;
}

/* Axes have sizes as params have values. */
static bool flag_is_of_import(const Flag *flag) {
    return flag->group == IMPORTING || flag->field == offsetof(Options, output) ||
           flag->field == offsetof(Options, settings) || flag->field == offsetof(Options, help);
}

/* What decides the program. */
static bool flag_is_of_explain(const Flag *flag) {
    return flag->group == MODEL || flag->field == offsetof(Options, target) || flag->field == offsetof(Options, arch) ||
           flag->field == offsetof(Options, real) || flag->field == offsetof(Options, verbose) ||
           flag->field == offsetof(Options, help);
}

const Command commands[COMMANDS] = {
    [COMMAND_PLOT] = {"plot", offsetof(Options, plot), PLOTTING, NULL, NULL},
    [COMMAND_GRADCHECK] = {"gradcheck", offsetof(Options, gradcheck), NULL, flag_is_of_gradcheck,
                           "it takes --set, and flags of the program"},
    [COMMAND_TOKENS] = {"tokens", offsetof(Options, tokens), TOKENS, NULL, NULL},
    [COMMAND_WEIGHTS] = {"weights", offsetof(Options, weights), WEIGHTS, NULL, NULL},
    [COMMAND_EXPLAIN] = {"explain", offsetof(Options, explain), NULL, flag_is_of_explain, NULL},
    [COMMAND_IMPORT] = {"import", offsetof(Options, import), IMPORTING, flag_is_of_import, NULL},
};

const Command *command_of(const Options *options) {
    for (const Command *command = commands; command < commands + COMMANDS; command++)
        if (*(const bool *)((const char *)options + command->field))
            return command;
    return NULL;
}

bool command_takes(const Command *command, const Flag *flag) {
    return command->takes ? command->takes(flag)
                          : flag->group == command->group || flag->field == offsetof(Options, output) ||
                                flag->field == offsetof(Options, help);
}
