/* What a generated program and the runtime say to each other.
 *
 * The generated file defines one `const MtcModel mtc_model` (tables, and a dozen functions that run the compiled steps
 * on its target) and a main that hands it to mtc_main. Everything else, from the command line to the checkpoint, is the
 * runtime, the same for every model and for both targets.
 *
 * C11 and C++17 both compile this file and all of runtime/ (a --standalone program is one .cu for nvcc). */
#ifndef MTC_H
#define MTC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default) /* what a shared library offers; the rest of the runtime is hidden */

#define MTC_ABI 16

typedef enum MtcType {
    MTC_F32,
    MTC_I32,
    MTC_U8,
    MTC_BOOL,
    MTC_F64,
    MTC_BF16,
    MTC_U16,
    MTC_F16,
    MTC_I8,  /* of a weight that is quantized */
    MTC_E4M3 /* of a value: floats of 8 bits */
} MtcType;

/* A tensor in the arena: a weight; a buffer, which is kept with the weights but not trained by gradients (the mean that
 * a field is normalised by); an optimizer state; or a value of a step (for the NaN diagnosis). */
typedef enum MtcRole { MTC_WEIGHT, MTC_BUFFER, MTC_STATE, MTC_VALUE } MtcRole;
/* COPY: of tensor `a`. WHITE: measured over the training data (session/whiten.h), filters [2 K, ...] that whiten patches of K bytes,
 * `a` being the part of their mean variance that is added to each, and `b` how many patches an example has; behind them in the
 * table what is added to their results [2 K], `a` being the base of the digits that sums come in, and `b` how many examples
 * may be measured at a time. DIRAC: of filters [out, taps ..., channels], the first `channels` pass one on each, the others are
 * uniform from `a` to `b`. */
typedef enum MtcInit { MTC_ZEROS, MTC_CONSTANT, MTC_UNIFORM, MTC_NORMAL, MTC_COPY, MTC_WHITE, MTC_DIRAC } MtcInit;
typedef struct MtcTensor {
    const char *name; /* "h.weight"; value: "logits" */
    MtcRole role;
    MtcType type;
    int rank;
    int64_t dim[8];
    size_t offset; /* bytes from the arena's start */
    MtcInit init;
    double a, b;   /* of the initialiser */
    int statement; /* row of MtcModel.statement: where it comes from; -1: nowhere */
    int phase;     /* value: the training phase that writes it */
    int file_axis
        [8];     /* its axis k in files, as users and PyTorch have it, is axis file_axis[k] here; all 0: the same */
    bool parted; /* of several processes, each has its part: states at the arena's end, as MtcModel has it */
} MtcTensor;

/* Where examples are rows of a table: the columns that a field is made of, and how. */
typedef enum MtcPart { MTC_PART_VALUE, MTC_PART_DAY_OF_YEAR, MTC_PART_MONTH, MTC_PART_WEEKDAY } MtcPart;
typedef enum MtcMissing { MTC_MISSING_ERROR, MTC_MISSING_SKIP, MTC_MISSING_MEAN, MTC_MISSING_VALUE } MtcMissing;
typedef struct MtcColumns {
    int count;                /* one; or one for each element of the field; 0: the field is not made of columns */
    const char *const *name;  /* of the table's columns */
    MtcPart part;             /* of a date; VALUE: the number or word itself */
    const char *date_format;  /* "%Y-%m-%d" */
    MtcMissing missing;       /* what becomes of a row where the column is empty */
    double missing_value;     /* VALUE: the number that stands in */
    const char *missing_text; /* VALUE, of words: the word that stands in; else NULL */
    bool unseen_other;        /* words that the training data do not have are the last class; else an error */
} MtcColumns;

/* A field of one example, stored as `type`, `elements` of them in a row of the data set. */
typedef struct MtcField {
    const char *name;
    MtcType type;
    int rank; /* without the batch axis */
    int64_t dim[7];
    int64_t elements;
    int classes;   /* 0: no classes. With a rank above 0 the classes are numbers in files, or the tokens of windows */
    bool predicts; /* the prediction depends on it */
    bool scaled;   /* and computes with it only after a function of it alone: x / 366, log(x) */
    bool windows;  /* its steps read MtcData.stride; of other fields examples lie one behind the other */
    int64_t steps, from; /* windows of rows: how many rows of one it has, and which is its first; steps 0: none are */
    MtcColumns columns;
    bool distribution; /* numbers of its last axis are a distribution: the target of cross_entropy */
    bool weighs;       /* it is the weight of its example: not below 0 */
} MtcField;

/* Files, or rows written in the model file. */
typedef struct MtcOrigin {
    const char
        *format; /* "idx", "npy": a path for each field; "npz", "tsv", "csv": one path; "cifar10": some paths, one
                           set; "images": a folder; "rows": none; windows of "characters", "bytes", "tokens": one path;
                           of "pieces": the text and its tokenizer */
    int paths;
    const char *const *path;   /* as written in the model file */
    bool header;               /* tsv, csv: the first line names the columns */
    int columns;               /* tsv, csv: how many the model file names, else 0; a header must agree with them */
    const char *const *column; /* and what they are called; "_": not used */
    char separator, quote;     /* tsv, csv; quote 0: none */
    int64_t rows;              /* "rows": how many, with the elements of all fields one after the other */
    const double *row;
    bool resize;    /* images: of other sizes than the field's are scaled */
    int64_t stride; /* windows: tokens, or rows, from the beginning of one to that of the next */
} MtcOrigin;

/* A set of examples: the part [from, to) of the origin's, in an order that the seed decides; all of them, in the origin's
 * order, when that is 0 to 1. Of windows: those within that part of the tokens or rows. */
typedef struct MtcSplit {
    const char *name;
    int origin;
    double from, to;
    int in_order; /* the examples as they stand in the origin; 0: drawn by the seed */
} MtcSplit;

/* What the products of a kernel run in: on a GPU, fp32 on its CUDA cores, the others on its tensor cores. */
typedef enum MtcMath {
    MTC_MATH_FP32,
    MTC_MATH_TF32,
    MTC_MATH_TF32X3,
    MTC_MATH_BF16,
    MTC_MATH_FP16,
    MTC_MATH_FP8,
    MTC_MATH_INT8,
    MTC_MATHS
} MtcMath;

/* A kernel of a training step, for `profile`. */
typedef struct MtcKernel {
    const char *name;
    int statement, phase; /* row of MtcModel.statement: what it begins with; -1: nothing */
    MtcMath math;
    double flops, bytes; /* arithmetic; traffic if every buffer is touched once */
} MtcKernel;

/* A `param` that is a flag of the program. */
typedef struct MtcKnob {
    const char *name, *help; /* help may be NULL */
    double value;            /* default */
    bool integer, has_range;
    double low, high;
    const char
        *bound; /* of what it is given to, "goes to dropout: at least 0 and below 1"; NULL: none beside the range */
    double least, most;
    bool evaluated; /* evaluation computes with it, not the training alone */
} MtcKnob;
/* A `param` that was fixed when compiling: shown by `info`, written to logs. */
typedef struct MtcFixed {
    const char *name;
    double value;
} MtcFixed;

/* A line of the model file or of one that it includes, for messages. */
typedef struct MtcStatement {
    const char *file; /* of a file that is included, beside the model file: "gpt.mt"; NULL: the model file */
    int line;
    const char *text;
} MtcStatement;

/* A data set on the device: one array per field, of `examples` rows. */
enum { MTC_MAX_FIELDS = 64, MTC_MAX_KNOBS = 32, MTC_MAX_REPORTS = 16, MTC_MAX_PLATEAUS = 8 };
typedef struct MtcData {
    const void *field[MTC_MAX_FIELDS]; /* device pointers */
    int64_t stride[MTC_MAX_FIELDS];    /* elements from the beginning of an example to that of the next */
    int64_t examples;
    const int *number; /* where a part of the set is on the device: which of it each example is; NULL: as they lie */
} MtcData;

/* A value of the evaluation that metrics over a set need of each example: numbers as the program computes with them, so many
 * of each. */
typedef struct MtcSetInput {
    size_t offset; /* bytes from the arena's start: those of a batch */
    int64_t elements;
} MtcSetInput;

/* A value that the text prints: of each example so many numbers, or one such row for all. */
typedef struct MtcPrint {
    const char *at, *text, *type; /* "mnist.mt:14", "relu(h)", "f32[128]" */
    size_t offset;                /* bytes from the arena's start */
    int64_t elements;
    bool batched;
} MtcPrint;

/* A weight of `mtc --precision int8`, rows of MtcModel.tensor: integers from -127 to 127, axis 0 being that of the outputs; for each
 * output how much 1 is; and how much it is in what the weight is multiplied with, which is a number. The values that it is multiplied
 * with are prints [first_input, first_input + inputs). */
typedef struct MtcQuantized {
    int weight, scale, input_scale;
    int first_input, inputs;
} MtcQuantized;

/* What a metric was given of a set of examples: of example i, the `elements[k]` numbers from value[k][i * elements[k]] on, and what it
 * counts, which is above 0; NULL: each counts as one. */
enum { MTC_MAX_SET_INPUTS = 2 };
typedef struct MtcSetValues {
    int64_t examples, elements[MTC_MAX_SET_INPUTS];
    const double *value[MTC_MAX_SET_INPUTS], *weight;
} MtcSetValues;

/* A metric over a set of examples, computed of what evaluation kept of each, in float64 and in the order of the examples. */
typedef enum MtcAverage { MTC_AVERAGE_BINARY, MTC_AVERAGE_MACRO, MTC_AVERAGE_MICRO, MTC_AVERAGE_WEIGHTED } MtcAverage;
typedef struct MtcSetMetric MtcSetMetric;
typedef double MtcSetFunction(const MtcSetMetric *metric, const MtcSetValues *values);
struct MtcSetMetric {
    MtcSetFunction *compute;
    int inputs, input[MTC_MAX_SET_INPUTS]; /* rows of MtcModel.set_input */
    int classes;                           /* 0: the elements of an example are numbers of their own, or conditions */
    MtcAverage average;                    /* of the classes' numbers */
};

enum { MTC_POSITION = 3, MTC_TOKEN = 4, MTC_SHARD = 5, MTC_FIRST_SHARD = 6, MTC_SHARDS = 7, MTC_CLOCKS = 8 };

/* Everything a step reads beside the arena; passed to each launch. All pointers are device pointers. */
typedef struct MtcRun {
    char *arena;
    MtcData data;
    const int *order; /* of each of some epochs, one after the other: its row i is example order[i]; NULL: i */
    int64_t *
        clock; /* [0]: steps done since the start of training; [1]: of them, since the first of those epochs began; [2]: reports written in this chunk;
                  MTC_POSITION, MTC_TOKEN: what decode reads; MTC_SHARD: the shard that train_shard computes, one of MTC_SHARDS from
                  MTC_FIRST_SHARD on, each of which has a row of reports for each step */
    double *reports;                    /* reports[slot * count + r]: batch mean of report r, as `weighted` has it */
    int64_t steps_per_epoch, last_step; /* of the whole training, which schedules of the learning rate refer to */
    float knob[MTC_MAX_KNOBS];
    int falls[MTC_MAX_PLATEAUS]; /* of learning rates that wait for better evaluations: how often each waited in vain */
    const double *exact_knob; /* the same numbers for a program of `mtc --real f64`, which runs on the CPU; else NULL */
    uint64_t seed;
    bool begins; /* decode, texts: what is made of weights alone is made, which stays until another program runs */
    int64_t
        before; /* examples of the set that come before those of `data`: 0, but where a prediction is given batch by batch */
    /* Of the model's flat weights, the elements [part[0], part[1]) that this process updates; where states of element 0 would lie, and
     * from there to the next state's. */
    int64_t part[2];
    uintptr_t states;
    size_t state_bytes;
} MtcRun;

/* How the tokens of texts are drawn on the device, as mtc_sample does where nothing is filtered; pointers are device pointers. `weight` has
 * room for mtc_drawing_bytes, for each text. */
enum { MTC_DRAWING_TILE = 1024, MTC_DRAWING_TILES = 1024 };
typedef struct MtcDrawing {
    double repetition_penalty, temperature;
    uint64_t seed, text;
    int64_t vocabulary, tiles; /* of the model: tokens, and so many tiles of them */
    int64_t tokens;            /* those that may be drawn, the first ones */
    int64_t position, place;   /* of the token that is decoded first; of the one that is drawn first, in its text */
    const float *prediction;
    double *weight;
    unsigned char *seen; /* of each token of the vocabulary: the text has it; read where there is a penalty */
    int32_t *drawn;      /* one after the other; -1: the prediction was no numbers, and what follows is none */
    /* Of `texts` at a time, the others have what is said here of the first behind it: their numbers, predictions, what they have seen, and
     * so many doubles of `weight` and drawn tokens each. */
    int64_t texts, each_weight, each_drawn;
    int32_t *token;     /* the last of each; NULL: there is one, and the clock has it */
    unsigned *arrivals; /* 0: how many have their token */
} MtcDrawing;
/* Of each token its weight; of each tile what is known of it, and its sum. */
static inline size_t mtc_drawing_bytes(int64_t vocabulary, int64_t tiles) {
    return sizeof(double) * (size_t)vocabulary + 64 * (size_t)tiles;
}

/* The GPUs of one host, each of a rank, that read and write each other's memory; pointers are those of this rank's GPU. */
enum { MTC_MAX_PEERS = 8, MTC_PEER_BYTES = 8192, MTC_MAIL_BYTES = 512 << 10 };
typedef struct MtcPeers {
    int rank, count;            /* 2, 4 or 8 */
    size_t offset, bytes;       /* of the model's sums, in the arena */
    char *arena[MTC_MAX_PEERS]; /* of each rank */
    char *words[MTC_MAX_PEERS]; /* MTC_PEER_BYTES of each, at first 0: who has come how far */
    char *
        room[MTC_MAX_PEERS]; /* of each, for what others send it: twice MTC_MAIL_BYTES of each rank; parts of buckets */
    int *lost;               /* memory of the host: 1 + the rank that was waited for in vain */
    long long patience;      /* nanoseconds that a rank waits for another */
} MtcPeers;

/* Before phase `phase` of a training step, what `count` reals at `offset` of the arena are in all shards of the batch is added up, and all
 * get the sums. */
typedef struct MtcExchange {
    int phase;
    size_t offset;
    int64_t count;
} MtcExchange;

/* Sums that are complete before phase `phase` of a training step, by what its phases wrote: `bytes` of them at `offset` of the arena. There, those of
 * the bucket before may be added up; the last one has no bytes. */
typedef struct MtcBucket {
    int phase;
    size_t offset, bytes;
} MtcBucket;

/* What attention keeps of positions, a row of so many bytes each, of `context` positions: of a text that is decoded alone, and of the first
 * of several, behind which the others have theirs. Offsets from the arena's start. */
typedef struct MtcCache {
    size_t offset, texts_offset, row_bytes;
} MtcCache;

typedef struct MtcModel {
    int abi;                   /* MTC_ABI */
    const char *name, *source; /* "mnist", "models/mnist.mt" */
    const char *target;        /* "cuda" or "cpu" */
    const char *architectures; /* cuda: "sm_90" or "sm_75;sm_80;...+ptx"; cpu: "" */
    const char *schedule;      /* "graph" or "persistent"; cpu: "openmp" */
    const char *model_hash;    /* hex, of the model text and everything it includes, and the fixed params */
    const char *training;      /* the train block: a line "optimizer = adam(lr)" for each of its settings */
    int64_t batch;
    int epochs;
    uint64_t seed;
    int64_t parameters; /* trainable numbers */
    double flops_per_step;
    size_t arena_bytes, unshared_bytes;
    int train_phases, eval_phases;
    bool
        stores_gradients; /* of `mtc gradcheck`: a step adds each weight's gradient to the state `<weight>.gradient`, and
                              changes no weight */

    int tensors, fields, origins, splits, knobs, fixed, settings, reports, kernels;
    const MtcTensor *tensor;
    const MtcField *field;
    const MtcOrigin *origin;
    const MtcSplit *split;
    const MtcKnob *knob;
    const MtcFixed *fixed_param;
    const char *const *setting;              /* "--recompute", "--set n=3": flags of mtc that it was compiled with */
    const char *const *report;               /* names; report[0] is "loss"; behind the means those of set_metric */
    const bool *report_rises;                /* higher is better */
    int monitor;                             /* the report that decides which weights are best, and when to stop */
    int patience;                            /* stop after so many evaluations without a better one; 0: never */
    int plateaus, plateau[MTC_MAX_PLATEAUS]; /* learning rates fall after so many evaluations without a better one */
    const MtcKernel *kernel;                 /* of a training step, in the order of its phases */
    /* The prediction, an eval value: [batch, prediction_dim...]. classes: print its arg max; yes: each number is a probability. */
    size_t prediction_offset;
    int prediction_rank;
    int64_t prediction_dim[7];
    bool prediction_is_classes, prediction_is_yes;
    /* Metrics over a set of examples: an evaluation reports them behind the means. */
    int set_inputs, set_metrics;
    const MtcSetInput *set_input;
    const MtcSetMetric *set_metric;
    const MtcSetMetric *confusion; /* how many of each class are taken for each; NULL: nobody asked */
    int set_weight;                /* row of set_input: the weights of the examples, where the model is `weighted` */
    /* Generation: a value of decode, [vocabulary]; positions from 0 to context - 1. */
    size_t scores_offset;
    int64_t context, vocabulary;
    const char *no_decode; /* why there is no decode; NULL: the data are no windows of tokens */
    size_t prompt_offset;  /* of prefill: so many tokens, each an int32_t */
    int64_t prompt_tokens;
    int64_t prefill_from; /* so many take no longer by prefill than by decode, one after the other */
    /* Of `texts` that are decoded at a time, where the token of each lies, an int32_t, and its prediction; and the caches. 0: each is decoded by
     * itself. */
    int64_t texts;
    size_t tokens_offset, texts_scores_offset;
    int caches;
    const MtcCache *cache;
    int statements;
    const MtcStatement *statement; /* the lines that tensors and kernels come from */

    /* Steps on the target. `train` advances run->clock by `steps` and writes one report row per step; it enqueues work
     * on the default stream and returns (cuda) or runs it (cpu). `run` may differ between calls. 0, or an error text of
     * the device. */
    const char *(*train)(const MtcRun *run, int64_t steps);
    /* One training step, only phases 0 .. phase: for the NaN diagnosis. The clock does not advance. */
    const char *(*train_until)(const MtcRun *run, int phase);
    /* Evaluates the batch of examples [first, first + rows), rows <= batch: writes one report row (means over the
     * rows) at slot, and the prediction. */
    const char *(*eval)(const MtcRun *run, int64_t first, int64_t rows, int64_t slot);
    /* Enqueues the writing of run->order: the permutations (mtc_permute) of the training examples in the epochs from
     * `epoch` on. NULL: the runtime computes and copies them. */
    const char *(*shuffle)(const MtcRun *run, int *order, int64_t epoch, int64_t epochs);
    /* Enqueues the drawing of a tensor that begins uniform, normal or constant: element i is that of (seed, stream, i). The memory is
     * clear. NULL: the runtime computes and copies them. */
    const char *(*draw)(char *arena, const MtcTensor *tensor, uint64_t seed, uint32_t stream);
    /* Takes the examples [first, first + rows) of a data set into the buffers that describe it (means, deviations), after
     * the `first` examples before; NULL: the model has none. */
    const char *(*measure)(const MtcRun *run, int64_t first, int64_t rows);
    /* The prediction at the position and for the token that the clock has, in the bytes of scores; the tokens at the
     * positions before it were given in their order, and nothing else ran since. NULL: the model generates no text. */
    const char *(*decode)(const MtcRun *run);
    /* The same so many times, each time for the token that was drawn of the prediction before: the clock goes on with it. NULL: the
     * runtime draws. */
    const char *(*draw_tokens)(const MtcRun *run, const MtcDrawing *drawing, int64_t tokens);
    /* What decode needs at a position of the tokens at those before, of all that the prompt has: instead of giving them in their order.
     * What is behind the tokens of a text may be any. NULL: there is no such way. */
    const char *(*prefill)(const MtcRun *run);
    /* Of several texts at a time, all at the position that the clock has: as decode and draw_tokens, a token and a prediction for each. */
    const char *(*decode_texts)(const MtcRun *run);
    const char *(*draw_texts)(const MtcRun *run, const MtcDrawing *drawing, int64_t tokens);
    /* One kernel of a training step, row of `kernel`, alone and `times` times: for profile. The clock does not advance.
     * The first call with other numbers than the call before may take longer: it prepares. */
    const char *(*run_kernel)(const MtcRun *run, int kernel, int64_t times);
    /* Prepares (captures the graph, sets attributes); called once, before the first train. */
    const char *(*prepare)(const MtcRun *run);
    void (*release)(void);

    /* A batch of `whole_batch` examples as so many shards of `batch` each, the last of which may have fewer; 0: it is computed
     * whole. Then there is no `train`, and a step is: for each shard `train_shard`, which leaves what the shard adds to the sums
     * in the `sums_bytes` at `sums_offset`, and to the reports in a row of its own; the sums of all added up there, by `add_sums`; `update`,
     * which makes weights and states of them, and advances the clock by 1. The second of two shards of a process adds to the sums that the
     * first has left. Where shards read sums of all of them on the way, `exchange`, `exchanges` of them in the order of their phases, none
     * does, there is no `train_shard`, and `train_between` computes the phases from .. to - 1 of a shard; those of `values_bytes` at
     * `values_offset` and its part of the sums must be the shard's own. */
    int shards;
    int64_t whole_batch;
    size_t sums_offset, sums_bytes;
    const char *(*train_shard)(const MtcRun *run);
    /* Steps of so many shards in one go, sums and updates too, with `waiting` memory for sums; NULL: who calls does so. */
    const char *(*train_whole)(const MtcRun *run, char *waiting, int64_t shards, int64_t steps);
    int exchanges;
    const MtcExchange *exchange;
    size_t values_offset, values_bytes;
    const char *(*train_between)(const MtcRun *run, int from, int to);
    const char *(*update)(const MtcRun *run);
    /* Weights that each process updates a part of, and the sums of their gradients, lie one behind the other in the same order,
     * `flat_bytes` of them (0: there are none), and so do averages of weights, where there are such, and `parted_states` states of each,
     * from `parted_offset` to the arena's end: a process has the same range of all. `update` reads sums of that range alone, or all. */
    size_t flat_bytes, flat_weights, flat_sums, flat_averages, parted_offset;
    int parted_states;
    bool averages, needs_all_sums;
    /* to[i] += from[i] for so many reals (floats, or the doubles of mtc --real f64) in the device's memory. */
    const char *(*add_sums)(void *to, const void *from, int64_t count);
    /* Sums over all peers, of so many bytes at an offset of each one's arena, in place of their own; and steps, of which each peer computes the shard that the clock shows: sums and update
     * as well. NULL: the target has no peers. */
    const char *(*add_over_peers)(const MtcPeers *peers, size_t offset, size_t bytes);
    const char *(*train_among)(const MtcRun *run, const MtcPeers *peers, int64_t steps);

    int buckets; /* in the order of their phases, from the end of the sums on; what is before them is complete when the step is */
    const MtcBucket *bucket;

    /* What print(x) shows of the next step: `watch` stores it, changes nothing, and does not advance the clock. */
    int prints;
    const MtcPrint *print;
    const char *(*watch)(const MtcRun *run);

    /* Examples have weights: a row of reports has, for report r, the sum over the batch of its numbers times u = weight / batch, and
     * behind the last report the sum of u. Else its means. */
    bool weighted;

    int own_losses;       /* optimizers that move along another loss than report[0] */
    int64_t first_update; /* the step with which every weight that is trained has been updated; 0: the first one */

    /* Weights that are integers, whose scales are buffers: such a program evaluates, and its training step does nothing. Prints are
     * not the text's then, and `watch` runs in floats. 0: there are none. */
    int quantized;
    const MtcQuantized *quantized_weight;
} MtcModel;

extern const MtcModel mtc_model;

/* Metrics over a set of examples (docs/operators.md). */
MtcSetFunction mtc_metric_rmse, mtc_metric_r2, mtc_metric_mape, mtc_metric_perplexity;
MtcSetFunction mtc_metric_precision, mtc_metric_recall, mtc_metric_f1, mtc_metric_roc_auc, mtc_metric_average_precision;

/* The command line of every program. Returns the exit code. */
int mtc_main(const MtcModel *model, int argc, char **argv);

/* ---- C ABI of the library: the same functions, for programs and languages that embed a model ----
 *
 * A session is used by one thread at a time, whichever; sessions of one library may be used by different threads at once.
 * All sessions of a library that are open at a time are on one device. "The device's memory" is the host's for target "cpu". */

typedef struct MtcSession MtcSession;
/* Each function that can fail returns 0, or a code of sysexits.h; mtc_error() then says why. */
const char *mtc_error(const MtcSession *session);
int mtc_create(const MtcModel *model, uint64_t seed, int device,
               MtcSession **session); /* *session is set even on failure, for mtc_error */
void mtc_destroy(MtcSession *session);
/* What the model is, and where a session stands, as JSON (docs/program.md); the caller's, for mtc_free. NULL: out of memory. */
char *mtc_describe(const MtcModel *model);
char *mtc_status(const MtcSession *session);
void mtc_free(void *text);

/* Copies host arrays (rows x elements of each field's type, in order) to the device. which: 0 train, 1 test, 2 validation.
 * Refused where a class is none of its field's; a set that is refused is empty then. */
int mtc_set_data(MtcSession *session, int which, int64_t examples, const void *const *fields);
/* The same; but where lent[i], fields[i] is in the device's memory, MTC_LENT_ALIGNMENT bytes aligned, and is read where it
 * lies until mtc_drop_data, other data of that set or mtc_destroy. It is the caller's, who changes it at their own risk. */
enum { MTC_LENT_ALIGNMENT = 16 };
int mtc_lend_data(MtcSession *session, int which, int64_t examples, const void *const *fields, const bool *lent);
int mtc_load_data(MtcSession *session, int which, const char *folder); /* the model's own split; folder may be NULL */
int mtc_drop_data(MtcSession *session, int which);
int mtc_set_knob(MtcSession *session, const char *name, double value);
/* Trains n steps from where the session stands, epochs reshuffled as they begin. reports: n x model->reports, or NULL. */
int mtc_train(MtcSession *session, int64_t steps, double *reports);

/* A training in epochs. Each function may be NULL; true ends training, after the steps in flight. */
typedef struct MtcFitting {
    int64_t epochs; /* the last, counted from the first that the weights ever saw: more than those done go on */
    int64_t every;  /* `epoch` is called after each epoch whose number is a multiple, and after the last; 0: as 1 */
    bool pauses; /* then with nothing in flight: the session may be saved or evaluated, and training ends right there */
    void *user;
    /* Some 20 times a second, or after each step where steps are longer: steps done in all, and the means of the reports over
     * the running epoch. Also while data are evaluated: it calls no function of the session. */
    bool (*steps)(void *user, int64_t step, const double *means);
    /* Epochs done in all; means over the epoch's steps; means over validation data, else test data, else NULL. */
    bool (*epoch)(void *user, int64_t epoch, const double *means, const double *watched);
    /* A line about what is not wrong, but goes nowhere: numbers far from 0, a batch that is larger than the data, a loss that does
     * not move. It calls no function of the session. */
    void (*warn)(void *user, const char *text);
} MtcFitting;
int mtc_fit(MtcSession *session, const MtcFitting *fitting);

/* The same in several processes, each with a session of this library and the same data sets; of a model in shards, whose number is a
 * multiple of `count`. Rank 0's session says how training begins: weights and states, position, seed, params, and its `fitting` how
 * long it is; only its functions are called, in which it may do what it may alone, and only it is to be used afterwards. */
typedef struct MtcRanks {
    int rank, count;
    /* socket[r]: a connected stream socket, whose other end rank r has; [rank]: any. They are closed when the call returns. */
    const int *socket;
    double timeout;   /* seconds that it waits for another one, beyond its own work; 0: as long as they are connected */
    const char *sums; /* how they add up, as --sums has it (docs/parallel.md); NULL: as they can */
} MtcRanks;
int mtc_fit_together(MtcSession *session, const MtcFitting *fitting, const MtcRanks *ranks);

/* model->reports means over every example, then model->set_metrics metrics. */
int mtc_evaluate(MtcSession *session, int which, double *reports);
/* The confusion matrix of the last evaluation, model->confusion->classes rows of as many: of class i, taken for class j. How many
 * examples, or what these weigh. */
int mtc_confusion(MtcSession *session, double *counts);
int mtc_predict(MtcSession *session, int64_t examples, const void *const *fields, float *out); /* NULL fields: zeros */
/* The same from and to the device's memory: fields[i] where lent[i], as for mtc_lend_data; out, where out_lent. */
int mtc_predict_lent(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent, float *out,
                     bool out_lent);
/* The model's prediction of the token that follows `token` at `position`, `vocabulary` numbers; scores may be NULL. Tokens
 * are given in their order, from position 0 on, with no other call in between. */
int mtc_decode(MtcSession *session, int64_t position, int32_t token, float *scores);
/* How the next token is drawn. Its scores are logarithms of probabilities; the rules are applied in this order. */
typedef struct MtcSampling {
    double
        repetition_penalty; /* scores of the tokens that the text has, its prompt among them, are multiplied by it; 1: none */
    double temperature; /* scores are divided by it; 0: the token of the highest score */
    int64_t top_k;      /* only the so many highest; 0: all */
    double top_p;       /* of those, only the highest that together have this probability; 1: all */
    double min_p;       /* of those, only what is so many times as probable as the likeliest, or more; 0: all */
    uint64_t seed;
} MtcSampling;

/* Texts that go on from a prompt. What is pointed to is read when they begin, and not kept. */
typedef struct MtcGeneration {
    MtcSampling sampling;
    const char *prompt; /* text; numbers with spaces between, where tokens are no text; NULL or "": behind a line end */
    int64_t tokens;     /* so many follow at most */
    int64_t batch;      /* so many texts; of beams, the best ones */
    int64_t beams;      /* 1: tokens are drawn; more: the likeliest text is searched, with so many kept at each token */
    int stops;          /* texts that end what is generated, before they begin; of numbers, where tokens are */
    const char *const *stop; /* none is empty */
} MtcGeneration;

/* A token and what is known of the text by it: so many bytes, not terminated, good until the next call. They may be a part of a
 * character of UTF-8. What may be the beginning of a stop waits, and comes with a later token. */
typedef struct MtcPiece {
    int64_t text;  /* from 0 on; -1: all texts are there */
    int32_t token; /* -1: none, but bytes that waited for the text's end */
    const char *bytes;
    size_t count;
} MtcPiece;

/* The prompt's tokens, then those after it, of one text after the other. Between two pieces the session may do anything: it may even
 * end before the generator does, of which then only mtc_generator_free can be called. *generator: NULL after a fault, which is the session's. */
typedef struct MtcGenerator MtcGenerator;
int mtc_generator_new(MtcSession *session, const MtcGeneration *how, MtcGenerator **generator);
int mtc_generator_next(MtcGenerator *generator, MtcPiece *piece);
void mtc_generator_free(MtcGenerator *generator); /* NULL: nothing */
/* Gives all pieces, each as it is made; true ends generating. */
typedef bool (*MtcPieceTaker)(void *user, const MtcPiece *piece);
int mtc_generate(MtcSession *session, const MtcGeneration *how, MtcPieceTaker take, void *user);
/* Reads or writes a tensor by name, row-major, with the axes that it has in files. bytes must match. */
int mtc_get(MtcSession *session, const char *name, void *values, size_t bytes);
int mtc_set(MtcSession *session, const char *name, const void *values, size_t bytes);
/* A tensor where it lies in the device's memory, until mtc_destroy, after all work in flight; mtc_describe has its strides. */
int mtc_locate(MtcSession *session, const char *name, void **tensor);
/* Memory of the device for the caller, who frees it before mtc_destroy, and copies between it and the host's, done on return.
 * These may be called beside another function of the session, by another thread. */
int mtc_memory_new(MtcSession *session, size_t bytes, void **memory);
int mtc_memory_free(MtcSession *session, void *memory);
int mtc_memory_read(MtcSession *session, void *host, const void *memory, size_t bytes);
int mtc_memory_write(MtcSession *session, void *memory, const void *host, size_t bytes);
/* A checkpoint, in one safetensors file: weights and buffers, optimizer states, where training stands, params, what the
 * training data decided (vocabularies). The file is the old one or the whole new one. Load or resume before mtc_load_data:
 * the file also decides how data are split. */
int mtc_save(MtcSession *session, const char *path);
/* Weights and buffers, vocabularies; of a checkpoint the params that evaluation computes with, unless mtc_set_knob has set them. */
int mtc_load(MtcSession *session, const char *path);
int mtc_resume(MtcSession *session, const char *path); /* everything: training goes on as if it had not stopped */

/* The network that predicts, with the session's weights and params, as a file of ONNX (docs/program.md#onnx); the old one or the whole new one. */
int mtc_export(MtcSession *session, const char *path);

/* One training at a time writes a file: for callers whose training writes one, as the command `train` does. NULL: it is theirs
 * until mtc_unlock_file or the process's end; else who has it, for mtc_free. `what` is what the caller's user called the file. Where
 * there are no locks, *lock is NULL, and all goes on as without. */
typedef struct MtcLock MtcLock;
char *mtc_lock_file(const char *what, const char *path, MtcLock **lock);
void mtc_unlock_file(MtcLock *lock); /* also of NULL */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
