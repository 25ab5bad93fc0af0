/* Parts of expressions (expr.h) that are text at once: places in memory, indices, conditions. */
#ifndef MTC_ELEMENT_H
#define MTC_ELEMENT_H

#include "emit/kernel/expr.h"

/* What the body, or one around it, has of the node at that index; or NULL. */
const Known *find_known(const Body *body, const Node *n, const char *key);
/* The name of what a row computes once, or the text itself. */
const char *once_in_row(const Body *body, const char *text);
/* Of what is_loaded: "t.h[i * H + j]", "t.image[row(batch, i) * IMAGE + j]". */
const char *loaded_element(const Body *body, const Node *n, const Index *at);
/* "i * H + j" of "t.h[i * H + j]", and "t.h + i * H + j" */
const char *element_offset(Arena *arena, const char *element);
const char *element_address(Arena *arena, const char *element);
/* Of a row's vector: the index along its inner axes only. */
const char *vector_element(Emitter *e, const Known *known, const Index *at);
const char *knob_member(const Emitter *e, const Node *knob);
/* The text of a lane, where there are lanes. */
const char *in_lane(Arena *arena, const Lanes *lanes, const char *text);
/* "guard ? text : otherwise" */
const char *guarded(const Emitter *e, const char *guard, const char *text, double otherwise, DType dtype);
/* Of a lookup, the value of operand 1 where its result is at `at`, one expression for all lanes; of another view, NULL. */
const char *lookup_value(Body *body, const Node *view, const Index *at);

#endif
