/* Words on the command line that mean something elsewhere. */
#include "commands/cli.h"

#include <stdio.h>
#include <string.h>

/* Flags of mtc that change what a program computes or where, with an example of a value; "": they take none. */
static const struct {
    const char *name, *example;
} compiled_flags[] = {{"batch", "N"},       {"decode-batch", "N"}, {"precision", "bf16"}, {"recompute", ""},
                      {"no-recompute", ""}, {"shards", "N"},       {"set", "NAME=VALUE"}, {"schedule", "graph"},
                      {"target", "cpu"},    {"arch", "native"},    {"real", "f64"}};

const char *mtc_compiled_flag(const char *name) {
    for (size_t i = 0; i < sizeof compiled_flags / sizeof *compiled_flags; i++)
        if (strcmp(compiled_flags[i].name, name) == 0)
            return compiled_flags[i].example;
    return NULL;
}

/* Other programs' words for commands. */
const char *mtc_usual_command(const char *name) {
    static const struct {
        const char *word, *command;
    } words[] = {{"fit", "train"},         {"run", "train"},         {"start", "train"},      {"resume", "train"},
                 {"test", "eval"},         {"evaluate", "eval"},     {"validate", "eval"},    {"score", "eval"},
                 {"inference", "predict"}, {"infer", "predict"},     {"classify", "predict"}, {"apply", "predict"},
                 {"sample", "generate"},   {"complete", "generate"}, {"chat", "generate"},    {"summary", "info"},
                 {"inspect", "info"},      {"show", "info"},         {"benchmark", "bench"},  {"time", "bench"},
                 {"onnx", "export"},       {"convert", "export"},    {"prof", "profile"},     {"perf", "profile"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, name) == 0)
            return words[i].command;
    return NULL;
}

/* Other programs' words for flags and for params that models tend to have. */
const char *mtc_usual_word(const char *name) {
    static const struct {
        const char *word, *flag;
    } words[] = {{"batch-size", "batch"},
                 {"bs", "batch"},
                 {"minibatch", "batch"},
                 {"learning-rate", "lr"},
                 {"learningrate", "lr"},
                 {"eta", "lr"},
                 {"num-epochs", "epochs"},
                 {"n-epochs", "epochs"},
                 {"max-epochs", "epochs"},
                 {"max-steps", "limit-steps"},
                 {"max-iters", "limit-steps"},
                 {"iterations", "limit-steps"},
                 {"gpu", "device"},
                 {"cuda", "device"},
                 {"random-seed", "seed"},
                 {"random-state", "seed"},
                 {"checkpoint", "load"},
                 {"ckpt", "load"},
                 {"weights", "load"},
                 {"model", "load"},
                 {"data-dir", "data"},
                 {"data-path", "data"},
                 {"dataset", "data"},
                 {"early-stopping", "patience"},
                 {"logfile", "log"},
                 {"log-file", "log"},
                 {"output-dir", "save"},
                 {"silent", "quiet"},
                 {"max-new-tokens", "tokens"},
                 {"max-tokens", "tokens"},
                 {"length", "tokens"},
                 {"temp", "temperature"},
                 {"num-beams", "beams"},
                 {"beam-size", "beams"},
                 {"beam-width", "beams"},
                 {"repeat-penalty", "repetition-penalty"},
                 {"stop-strings", "stop"},
                 {"stop-sequence", "stop"},
                 {"num-samples", "batch"},
                 {"num-return-sequences", "batch"}};
    char dashed[64];
    snprintf(dashed, sizeof dashed, "%s", name);
    for (char *c = dashed; *c; c++)
        *c = *c == '_' ? '-' : *c;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].word, dashed) == 0)
            return words[i].flag;
    return NULL;
}
