/* The sections of a generated program. */
#ifndef MTC_PROGRAM_H
#define MTC_PROGRAM_H

#include "emit/kernel/emitter.h"

/* ---- banner.c, quote.c: comments ---- */

void write_banner(Emitter *e, Writer *out);
/* The statements of the model that a kernel carries out, with their places. */
void write_statements_of(Emitter *e, const Kernel *kernel, Writer *out);
/* As the user wrote it; of an absolute path, the name. */
const char *source_path(const Module *module);
int line_of(Span src);
/* Nodes of gradients and updates come behind the reports of a training step: the first so many are none. */
int forward_nodes(const Graph *g);
/* Line `number` without its comment, with single spaces. */
const char *line_text(Arena *arena, const Source *source, int number);

/* ---- statements.c: the lines that tensors and kernels come from ---- */

void gather_statements(Emitter *e);
void write_statements(Emitter *e, Writer *out);
int row_of_statement(const Emitter *e, Span src); /* -1: it comes from no line */
Span source_of_kernel(const Kernel *kernel);      /* of the first of its nodes that comes from a line */

/* ---- tables.c: what the runtime knows about the model ---- */

void write_tables(Emitter *e, Writer *out);
void write_net_tables(Emitter *e, Writer *out); /* of a library of the prediction alone */
const Node *output_of(const Program *program);  /* NULL: none */
const Node *prediction(const Emitter *e);       /* of evaluation; NULL: none */

/* ---- tensor_tables.c: weights, states, values ---- */

int write_tensor_table(Emitter *e, Writer *out); /* returns how many */
int row_of_weight(const Emitter *e, int weight); /* of the weight in the table */

/* ---- generation_tables.c: text that goes on from a prompt ---- */

void write_caches(Emitter *e, Writer *out);     /* a table, where several texts are decoded at a time */
void write_generation(Emitter *e, Writer *out); /* the model's members; or why there is none */

/* ---- metric_tables.c: metrics over a set of examples ---- */

void write_metric_tables(Emitter *e, Writer *out);
void write_metrics(Emitter *e, Writer *out); /* the model's members that lead to the tables */

/* ---- data_tables.c: fields, where examples come from, splits ---- */

void write_data_tables(Emitter *e, Writer *out);
void write_fields(Emitter *e, Writer *out); /* alone */

#endif
