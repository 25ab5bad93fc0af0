/* `mtc --emit=scaling`: what a training step would take on several GPUs. */
#ifndef MTC_SCALING_H
#define MTC_SCALING_H

#include "plan/plan.h"
#include "support/diag.h"
#include "support/text.h"

/* What GPUs are joined by. */
typedef enum LinkField {
    LINK_HOST,       /* GPUs of a host */
    LINK_INSIDE,     /* GB/s each way between two of them */
    LINK_INSIDE_US,  /* microseconds of an exchange beside its bytes */
    LINK_MEETING_US, /* of a meeting of GPUs that reach each other's memory */
    LINK_BETWEEN,    /* GB/s each way that each GPU has to other hosts */
    LINK_BETWEEN_US, /* as above */
    LINK_FIELDS
} LinkField;

typedef struct Links {
    double at[LINK_FIELDS];
    bool given[LINK_FIELDS];
} Links;

/* Of "host=4,between=25"; NULL: all as they are without. False after reporting what is wrong. */
bool links_parse(Diag *diag, const char *text, Links *links);

/* Of a plan in shards: their number says how many there are in all; 1: each GPU has one, and the batch grows with the GPUs. */
void scaling_print(const Plan *plan, const Links *links, Text *out);

#endif
