/* What `mtc explain` says of one kernel, and how words become lines. */
#ifndef MTC_EXPLAIN_WORDS_H
#define MTC_EXPLAIN_WORDS_H

#include "pass/kernel.h"

/* Lines of at most 80 columns behind `indent` spaces, those after the first two further in. */
void fill(Text *out, int indent, const char *words);

/* The kernel computes it for itself and others, not only where it is read. */
bool nodes_have(const Kernel *kernel, const Node *n);

/* "a product [64, 784] x [784, 128], and in its epilogue 2 operations on each output." */
void say_work(const Kernel *kernel, Text *out);
/* What fusion had against joining a kernel before. */
void say_why_apart(const Kernel *kernel, Text *out);

#endif
