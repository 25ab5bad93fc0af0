/* What all of emission shares: the module, its plan, the names of things, and the dialect. */
#ifndef MTC_EMITTER_H
#define MTC_EMITTER_H

#include "emit/emit.h"
#include "emit/text/index.h"
#include "emit/text/writer.h"

typedef struct Emitter Emitter;
typedef struct Body Body;
typedef struct Launch Launch; /* launches.c */

/* Those that a kernel's function can have, in this order; it has those that its lines say. */
typedef enum KernelParameter {
    PARAMETER_TENSORS,
    PARAMETER_BATCH,
    PARAMETER_TILE,
    PARAMETER_SHARED,
    PARAMETER_GATE,
    PARAMETERS
} KernelParameter;

/* What a function's text may say otherwise where it is written for several sizes: sized.h. */
typedef enum MarkKind {
    MARK_SIZE,      /* a size, or a whole number */
    MARK_COUNT,     /* a whole number as a real one: 196.0f */
    MARK_RECIPROCAL /* of a whole number: 0.0051020408f */
} MarkKind;

/* Where it stands: `length` bytes of the declarations, or of the lines. */
typedef struct Mark {
    MarkKind kind;
    int64_t value;    /* of a number */
    const char *text; /* as it is written; of a name what comes after the function's */
    bool declares;
    size_t at, length;
} Mark;

/* The function of a kernel. */
typedef struct Function {
    const Kernel *kernel;
    const char *name;
    Writer comments, tables;    /* what stands above it */
    Writer declarations, lines; /* its constants, and its body */
    int like, place; /* the first function that is the same but for its tensors; where it stands among those */
    int places;      /* of the first: how many there are */
    NameList locals; /* names that its body took */
    /* What its lines say, once find_repeats has read them: its tensors, rows of plan->buffers, as they are first mentioned; other
     * members of Tensors, by row of shared_members; parameters. */
    VEC(int) buffers;
    bool *shared, has[PARAMETERS];
    const char *type; /* of the struct of its tensors, where it has several places; else NULL */
    const char *at;   /* the member of Tensors with those of each place, in C */
    bool sums;        /* it has a table of tensors that it sums */

    /* Its text without its sizes, NULL if it must stand as it is, and where they are. */
    const char *shape;
    VEC(Mark) marks;
    int sized; /* the first function that says the same in other sizes, of which it is one; -1: there is none */
    int first; /* where its places begin among those of all these */
    const char *general; /* of that first one: the name of what is written once */
    NameList parameters; /* and the sizes that this is told; */
    NameList arguments;  /* what each function says that they are */
} Function;

typedef VEC(const Kernel *) KernelsInOrder;

/* What a kernel folds into: equations and code say the same. */
typedef struct FoldName {
    const Node *node;
    const char *name;
} FoldName;

/* Numbers that a row keeps between its stages. */
typedef struct RowVector {
    const Node *node;
    const char *name, *extent;
    unsigned inner;
} RowVector;

/* A row of an operand that stages read from shared memory. */
typedef struct HeldRow {
    const char *name, *type, *extent; /* logits_row, bfloat16, 50304 */
    const char *address;              /* where it lies: "t.logits + i * 50304" */
    const char *stages;               /* what the stages are called */
    const char *bytes;                /* of shared memory, the team's and the row's: "wanted_bytes" */
} HeldRow;

struct Dialect {
    const char *name;   /* "cuda" */
    bool schedules;     /* graph or persistent; a kernel starts before the phase before it has ended, and waits */
    bool peers;         /* devices of a host read and write each other's memory */
    const char *member; /* "t.": how a kernel reaches its tensors */
    bool templates;     /* what a function is told when it is compiled is a constant for it */
    bool across;        /* kernels that are equal in two programs, if only once in each, are one function too */
    const char *report; /* "batch.reports" */
    const char *real;   /* the type of an f32 */
    const char *named;  /* "constexpr": what a number's declaration begins with */
    const char *header; /* "cuda/%s.cuh": the file with a function of the library */
    const char *null;   /* a null pointer */
    const char *sole;   /* "restrict ": nothing else points there */
    bool near;          /* the library has functions that are near enough where products are rounded: OpDef.near */
    bool (*defines)(const char *name);        /* a name that no local can have */
    bool (*defines_kernel)(const char *name); /* the same of a kernel */
    const char *opens, *closes;   /* "namespace {": around tensors, kernels and what runs them; NULL: nothing */
    const char *stored_condition; /* "truth($0)": how one is read; NULL: as it lies */

    /* How a program runs, for who reads it. */
    const char *(*execution)(const Emitter *e);
    void (*includes)(Emitter *e, Writer *out);
    /* The struct Tensors, and how it is made of a run. */
    void (*tensors)(Emitter *e, Writer *out);
    /* The kernels of a program by phases. */
    void (*phases)(Emitter *e, const Program *program, Writer *out);
    /* The kernels of a program in the order in which run_kernel counts them; NULL: that of the phases. */
    void (*kernels)(Emitter *e, const Program *program, KernelsInOrder *kernels);
    /* train, train_until, shuffle where it schedules, prepare, release; evaluate; measure; decode; decode_texts; prefill. */
    void (*step)(Emitter *e, Writer *out);
    void (*evaluation)(Emitter *e, Writer *out);
    void (*measuring)(Emitter *e, Writer *out);
    void (*decoding)(Emitter *e, Writer *out);
    void (*texts)(Emitter *e, Writer *out);
    void (*prefilling)(Emitter *e, Writer *out);
    void (*updating)(Emitter *e, Writer *out); /* of a batch in shards */
    void (*watching)(Emitter *e, Writer *out); /* what print(x) shows of the next step */

    /* The constants of a kernel; NULL: it has none. */
    void (*declare)(Emitter *e, const Kernel *kernel, Writer *out);
    /* A kernel's function, what says where its tensors begin if it has several places, and of several sizes which these are. */
    void (*function)(Emitter *e, const Function *f, Writer *out);
    /* A product: the body of its kernel. */
    void (*contract)(Body *kernel);
    /* Sums by patches: the same. NULL where there are none. */
    void (*patches)(Body *kernel);
    /* A call of the library: the same. */
    void (*library)(Body *kernel);

    /* A kernel whose neighbouring rows are neighbours in memory; NULL: like any other. */
    void (*nest)(Body *kernel);
    /* A kernel of rows. */
    void (*rows)(Body *row, const char *rows, const Writer *lines, Writer *out);
    void (*row_vectors)(Body *row, const RowVector *vectors, int count);
    /* The stages, which read a row where it is held. Targets whose blocks have memory of their own. */
    void (*hold)(const HeldRow *held, const Writer *stages, Writer *out);
    /* "for (...)" over what the stage loops over, `variable` counting by its lanes. */
    const char *(*loop)(const Body *row, const Stage *stage, const Tree *variable);
    /* Declares the sum `name` of the row, of those that the team has at a time; the lines add the terms at j to that of row i. Where there are
     * such kernels. */
    void (*sum_rows)(Body *row, const Stage *stage, const char *name, const Writer *lines);
    /* Before the loop over the terms of the sum `name`; NULL: nothing to do. */
    void (*sum)(Body *element, const char *name);
    /* After a loop: puts together what the threads of the row folded into `name`. NULL: nothing to do. */
    void (*fold)(Body *row, const Node *reduction, const char *name);
    /* "if (...)" before what happens once in a row; NULL: a row has one thread. */
    const char *(*once)(const Body *row);
    /* Writes a local of that name: the sum of tensors, each read at `place`. NULL: a sum is written term by term. */
    void (*long_sum)(Body *body, const char *name, const Buffer *const *terms, int count, const Tree *place);
    /* After row vectors were filled; NULL: nothing to do. */
    void (*sync)(Body *row);
    /* Writes a stage that only has one thin product, in a way of the target's own; false: it has none for this one. */
    bool (*product)(Body *row, const Stage *stage, const char *extent);
};

typedef VEC(const Node *) NodesSaid;

/* A line of the model file, or of one that it includes. */
typedef struct Statement {
    const Source *source;
    const char *file; /* as it is shown; NULL: the model file */
    int line;
    const char *made; /* the first tensor or kernel that comes from it */
} Statement;

/* A number that an operator says the meaning of: LOG_BETA1. */
typedef struct NamedNumber {
    const char *hint, *symbol;
    double value;
    bool printed; /* a line says it */
} NamedNumber;

/* A function's sum over a table of tensors, which is a member of Tensors where the target has it there. */
typedef struct LongSum {
    const char *member;
    const Buffer *const *terms;
    int count;
} LongSum;

struct Emitter {
    Arena *arena;
    const Module *module;
    const Plan *plan;
    const Program *const *programs; /* of the plan */
    const EmitOptions *options;
    bool mathematics; /* numbers and types as in equations, not as in code */
    const Dialect *dialect;
    Sizes *sizes;
    Names globals; /* functions, types and constants of the file */
    Names members; /* of Tensors */
    VEC(Function) functions;
    NameList *locals;     /* of the function that is being made */
    VEC(Launch) launches; /* of the training step first */
    VEC(FoldName) folds;
    VEC(NamedNumber *) numbers;
    VEC(LongSum) sums;
    VEC(Statement) statements;
    NodesSaid *said;     /* numbers for all of a step whose equations are written */
    const char **tensor; /* member of Tensors, by row of plan->buffers */
    const char **field, **knob, **report;
    const char **stride; /* of a field of windows: the member that says where examples begin; else NULL */
};

const char *tensor_name(const Emitter *e, const Buffer *buffer);
/* "0.5f": a number of the type; integers and conditions without a point. */
const char *literal(const Emitter *e, double value, DType dtype);
const Tree *literal_tree(const Emitter *e, double value, DType dtype);
/* The constant's number; its name, where it has a hint. */
const Tree *number_tree(Emitter *e, const Node *constant);
/* "constexpr float LOG_BETA1 = -0.105360516f;" for each that some line says. */
void write_numbers(const Emitter *e, Writer *out);
const char *c_type(const Emitter *e, DType dtype);
const char *pointer_mark(const Emitter *e, DType dtype); /* "*", or "*restrict " */

#endif
