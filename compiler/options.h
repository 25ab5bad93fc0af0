/* The command line of mtc. One table of flags makes the parser, --help, the shell completion and the manual page. */
#ifndef MTC_OPTIONS_H
#define MTC_OPTIONS_H

#include "emit/build/target.h"
#include "front/front.h"
#include "pass/kernel.h"
#include "plot/plot.h"
#include "support/diag.h"
#include "tokens/tokens.h"
#include "weights/weights.h"

#define MTC_VERSION "0.1.0"

/* In the order of the choices of --emit and --real in flags.c. */
typedef enum Emit {
    EMIT_PROGRAM,
    EMIT_AST,
    EMIT_GRAPH,
    EMIT_ONNX,
    EMIT_GRAD,
    EMIT_SIMPLE,
    EMIT_SPLIT,
    EMIT_FUSED,
    EMIT_SCHEDULE,
    EMIT_PLAN,
    EMIT_PLAN_SVG,
    EMIT_SCALING,
    EMIT_SOURCE /* of the first target; then of the others */
} Emit;
typedef enum Real { REAL_F32, REAL_F64 } Real;

typedef struct Options {
    const char *input;    /* the model file */
    const char *output;   /* NULL: named after the model; plot: curves.svg */
    int target;           /* 1 + row of targets; 0: not said */
    int emit;             /* Emit */
    bool recompute;       /* the backward pass computes values again rather than keep them */
    bool no_recompute;    /* it keeps them; neither: as the text says */
    int batch;            /* examples of a step; 0: as the text says */
    int shards;           /* parts of a batch that are computed one by one; 0: it is computed whole */
    int decode_batch;     /* texts that are decoded at a time; 0: one */
    bool shard_optimizer; /* of several processes, each has the states of a part of the weights */
    int schedule;         /* Schedule */
    int real;             /* Real */
    int precision;        /* 1 + Precision; 0: as the text says */
    const char *arch;     /* NULL: the GPU that is present, else a portable list */
    const char *link;     /* what GPUs are joined by; NULL: as scaling.c has it */
    const char *keep;     /* folder for the generated source */
    int jobs;
    bool standalone, shared, predict_only, no_cache, verbose;
    const char *embed; /* predict_only: weights that the library carries; NULL: none */
    bool summary, format, in_place, check, operators, json, list_options, version, help;
    VEC(ParamSetting) settings;
    bool gradcheck; /* mtc gradcheck: compare gradients with finite differences */
    VEC(const char *) program_flags;
    bool explain;            /* mtc explain: how lines became kernels */
    const char *explained;   /* a value, a line or a kernel of it; NULL: all */
    bool plot;               /* mtc plot: draw logs */
    bool tokens;             /* mtc tokens: encode texts */
    bool weights;            /* mtc weights: convert a file of PyTorch */
    bool import;             /* mtc import: an ONNX file as a model */
    bool force;              /* what is there is replaced */
    bool flat;               /* import: blocks that repeat are written out */
    VEC(const char *) files; /* logs, texts, weights */
    const char *tokenizer;   /* path of its file */
    int learn;               /* a tokenizer of so many tokens is made; 0: none */
    const char *key;         /* the member of a checkpoint that holds the weights; NULL: found */
    const char *rename;      /* path of a file of rules; NULL: names stay */
    int axis;                /* PlotAxis */
    const char *title;
} Options;

/* The target that --target or --emit=ENDING asks for; NULL: neither does. */
const Target *options_target(const Options *options);

/* Parses and checks; a wrong command line is reported. Returns 0 or EXIT_USAGE. */
int options_parse(Options *options, Diag *diag, int argc, char **argv);
/* "mtc --recompute --set n=3": with the flags that decide what a program computes and how. */
const char *options_command(const Options *options, Arena *arena);
/* "--recompute", "--set n=3": the flags that make the same program of the model for its target, each with its value. Returns how many. */
int options_settings(const Options *options, Arena *arena, const char *const **settings);
void options_help(const Options *options, Text *out);
/* Flag, letter, argument, group and help of each option, separated by tabs: for completion and manual page. */
void options_list(Text *out);

#endif
