#include "words.h"

#include <string.h>

const char *usual_word(const char *flag, const char *word) {
    static const struct {
        const char *flag, *word, *here;
    } words[] = {{NULL, "batch-size", "batch"},
                 {NULL, "batch_size", "batch"},
                 {NULL, "bs", "batch"},
                 {NULL, "out", "output"},
                 {NULL, "dtype", "precision"},
                 {"--target", "gpu", "cuda"},
                 {"--target", "nvidia", "cuda"},
                 {"--target", "cu", "cuda"},
                 {"--target", "host", "cpu"},
                 {"--target", "x86", "cpu"},
                 {"--target", "x86_64", "cpu"},
                 {"--target", "amd64", "cpu"},
                 {"--target", "arm64", "cpu"},
                 {"--target", "aarch64", "cpu"},
                 {"--target", "c", "cpu"},
                 {"--precision", "float32", "fp32"},
                 {"--precision", "float", "fp32"},
                 {"--precision", "single", "fp32"},
                 {"--precision", "f32", "fp32"},
                 {"--precision", "32", "fp32"},
                 {"--precision", "bfloat16", "bf16"},
                 {"--precision", "f16", "fp16"},
                 {"--precision", "float16", "fp16"},
                 {"--precision", "half", "fp16"},
                 {"--precision", "float8", "fp8"},
                 {"--precision", "e4m3", "fp8"},
                 {"--precision", "16", "bf16"},
                 {"--precision", "mixed", "bf16"},
                 {"--real", "double", "f64"},
                 {"--real", "float64", "f64"},
                 {"--real", "fp64", "f64"},
                 {"--real", "float", "f32"},
                 {"--real", "float32", "f32"},
                 {"--real", "fp32", "f32"},
                 {"--emit", "cuda", "cu"},
                 {"--emit", "cpu", "c"},
                 {"--emit", "source", "cu"},
                 {"--emit", "forward", "graph"},
                 {"--emit", "backward", "grad"},
                 {"--emit", "memory", "plan"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if ((flag ? words[i].flag && strcmp(words[i].flag, flag) == 0 : !words[i].flag) &&
            strcmp(words[i].word, word) == 0)
            return words[i].here;
    return NULL;
}

bool is_verb(const char *word) {
    static const char *const verbs[] = {"train", "compile", "build",    "run",  "fit",
                                        "eval",  "predict", "generate", "check"};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i], word) == 0)
            return true;
    return false;
}
