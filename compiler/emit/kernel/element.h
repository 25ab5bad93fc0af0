/* Parts of expressions (expr.h) that are found at once: places in memory, indices, conditions. */
#ifndef MTC_ELEMENT_H
#define MTC_ELEMENT_H

#include "emit/kernel/expr.h"

/* What the body, or one around it, has of the node at that index; or NULL. */
const Known *find_known(const Body *body, const Node *n, const Index *at);
/* row(batch, i), an index into the data */
const Tree *example_of_row(Arena *arena, const Tree *row);
/* The name of what a row computes once, or the call itself. */
const Tree *once_in_row(const Body *body, const Tree *call);
/* Of what is_loaded: t.h[i * H + j], t.image[row(batch, i) * IMAGE + j]. */
const Tree *loaded_element(const Body *body, const Node *n, const Index *at);
/* i * H + j of t.h[i * H + j], and t.h + i * H + j */
const Tree *element_offset(const Tree *element);
const Tree *element_address(Arena *arena, const Tree *element);
/* Of a row's vector: the index along its inner axes only. */
const Tree *vector_element(Emitter *e, const Known *known, const Index *at);
const Tree *knob_member(const Emitter *e, const Node *knob);
/* What a lane has of it, where there are lanes. */
const Tree *in_lane(Arena *arena, const Lanes *lanes, const Tree *tree);
/* guard ? value : otherwise */
const Tree *guarded(const Emitter *e, const Tree *guard, const Tree *value, double otherwise, DType dtype);
/* mean.c: operand k of the map, `factor`; 1 / WIDTH, where that is what it is and the other operand has sums of so many. */
const Tree *mean_factor(Emitter *e, const Node *map, int k, const Tree *factor);
/* The index of a lookup is a field of the data, or a view of one. */
bool is_of_data(const Node *index);
/* Of a lookup, the value of operand 1 where its result is at `at`, one expression for all lanes; of another view, NULL. */
const Tree *lookup_value(Body *body, const Node *view, const Index *at);

#endif
