/* The sections of a generated program. */
#ifndef MTC_PROGRAM_H
#define MTC_PROGRAM_H

#include "emit/kernel_text.h"

/* ---- program.c ---- */

Emission *emit_program(const Module *module, const Plan *plan, const EmitOptions *options, const Target *target);

/* "h(t, batch, tile)": a call of the kernel's function, once it has been written. */
const char *kernel_call(const Emitter *e, const Kernel *kernel);
const char *kernel_name(const Emitter *e, const Kernel *kernel);
const Function *function_of(const Emitter *e, const Kernel *kernel);

const Program *program_of(const Emitter *e, const Kernel *kernel);
/* One launch runs all phases, and has all tensors at hand. */
bool program_is_persistent(const Emitter *e, const Program *program);
double program_flops(const Program *program); /* per step: sums of the kernels' */
double program_bytes(const Program *program);

/* ---- banner.c, quote.c: comments ---- */

void write_banner(Emitter *e, Writer *out);
const char *tile_text(Arena *arena, int64_t tiles); /* "1 tile", "1,024 tiles" */
/* The statements of the model that a kernel carries out, with their places. */
void write_statements_of(Emitter *e, const Kernel *kernel, Writer *out);
/* As the user wrote it; of an absolute path, the name. */
const char *source_path(const Module *module);
int line_of(Span src);
/* Line `number` without its comment, with single spaces. */
const char *line_text(Arena *arena, const Source *source, int number);

/* ---- product_cuda.c: products in CUDA ---- */

void declare_product(Emitter *e, const Kernel *kernel, const char *name, Writer *out);
void write_product(Body *kernel);

/* ---- library.c: kernels of kernels_lib ---- */

/* "BATCH, POSITIONS, 4, 4, 16, true, 0": what Shape is made of. */
const char *library_shape(Emitter *e, const Kernel *kernel);
/* "t.qkv, t.y, t.y_sums, 0.25f" */
const char *library_arguments(Emitter *e, const Kernel *kernel);
void write_library_equations(Emitter *e, const Kernel *kernel, Writer *out);
/* Lines for these headers and those of the functions that kernels call, by name. */
typedef struct Include {
    const char *file, *note; /* "cuda/batch.cuh" */
} Include;
void write_includes(Emitter *e, const Include *includes, int count, Writer *out);

/* ---- epilogue.c: what becomes of the sums of a product, in CUDA ---- */

/* Writes the callbacks that matmul takes; returns them: "preloaded(read, out), sum_of_a(side)". */
const char *write_epilogues(Body *kernel);
/* Neighbours in j that a call of the epilogue takes; 1: no vectors. */
int epilogue_lanes(Emitter *e, const Kernel *kernel);
/* product_cuda.c: a product in turns, in a launch of its own. */
bool takes_turns(Emitter *e, const Kernel *kernel);
/* "auto out = [&](int i, int j, float sum) { ... };", on one line if it has one statement. */
void write_lambda(Writer *out, const char *head, const Writer *lines);

/* ---- tensors.c: the struct of everything that a kernel reaches ---- */

typedef struct Member {
    const char *type, *name, *value, *note; /* float *, h_weight, (float *)(run.arena + 0), [H, IMAGE] */
} Member;
typedef VEC(Member) Members;

/* Claims the members' names. */
void tensors_name(Emitter *e);
/* `arrow`: how `run`'s members are reached; `of`: "run->", or "" where the arena is a parameter of its own. */
Members tensors_members(Emitter *e, const char *arrow, const char *of);
/* Those of them that are no tensors of the arena: fields, flags. */
Members shared_members(Emitter *e);
/* "type name; // note" for each, notes aligned. */
void write_members(Emitter *e, const Members *members, Writer *out);

/* ---- statements.c: the lines that tensors and kernels come from ---- */

void gather_statements(Emitter *e);
void write_statements(Emitter *e, Writer *out);
int row_of_statement(const Emitter *e, Span src); /* -1: it comes from no line */
Span source_of_kernel(const Kernel *kernel);      /* of the first of its nodes that comes from a line */

/* ---- tables.c: what the runtime knows about the model ---- */

void write_tables(Emitter *e, Writer *out);
const Node *prediction(const Emitter *e); /* of evaluation; NULL: none */
/* "a, b, c" in lines that fit, the first after `head`, further ones below its end: as clang-format breaks a list. */
void write_list(Writer *out, const char *head, const char *const *items, int count, const char *tail);

/* ---- data_tables.c: fields, where examples come from, splits ---- */

void write_data_tables(Emitter *e, Writer *out);

#endif
