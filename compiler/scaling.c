/* A step of N GPUs is the work of their shards, then the sums, then the update, one after the other: time adds up.
 *
 * Sums go as runtime/ranks/ranks.c sends them: in turn n, GPUs whose numbers differ in bit n exchange halves, B / 2, B / 4, ... of the B
 * bytes, add them, and the pieces go the same way back. An exchange of b bytes takes latency + b / bandwidth of the link. Up to eight GPUs
 * of a host that reach each other's memory meet instead, as kernels_lib/cuda/peers.cuh has it: once, where each sends all it has to all
 * others, or twice, and each reads and writes its part of all. */
#include "scaling.h"

#include "mtc.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_GPUS = 1024 };

/* ---- links ---- */

/* Inside: NCCL's all-reduce of two H200s over NVLink took 22 us for 407 KB, 178 us for 44 MB and 1.60 ms for 496 MB; 20.8 us and 300 GB/s,
 * which have the least relative squares, are off by 6% at most, and two exchanges share the 20.8. Between: a port of 400 Gb/s for each GPU, not
 * measured. */
typedef struct LinkRow {
    const char *name;
    double value; /* where it is not given */
    double least, most;
    bool whole;
} LinkRow;

static const LinkRow link_fields[LINK_FIELDS] = {
    [LINK_HOST] = {"host", 8, 1, 65536, true},
    [LINK_INSIDE] = {"inside", 300, 0.001, 1e5, false},
    [LINK_INSIDE_US] = {"inside_us", 10.4, 0.001, 1e5, false},
    [LINK_MEETING_US] = {"meeting_us", 2.3, 0.001, 1e5, false},
    [LINK_BETWEEN] = {"between", 50, 0.001, 1e5, false},
    [LINK_BETWEEN_US] = {"between_us", 20, 0.001, 1e5, false},
};

static const char *const link_syntax = "it takes host=GPUS, inside=GB/S, inside_us=N, meeting_us=N, between=GB/S and "
                                       "between_us=N, with commas between them";

static int link_named(Diag *diag, const char *name) {
    const char *names[LINK_FIELDS];
    for (int i = 0; i < LINK_FIELDS; i++)
        if (strcmp(names[i] = link_fields[i].name, name) == 0)
            return i;
    const char *nearest = nearest_name(name, names, LINK_FIELDS);
    diag_error(diag, (Span){0}, "--link knows no '%s'%s%s%s; %s", name, nearest ? "; did you mean '" : "",
               nearest ? nearest : "", nearest ? "'?" : "", link_syntax);
    return -1;
}

/* "host=4" */
static void parse_link(Diag *diag, const char *text, Links *links) {
    Arena *arena = diag_arena(diag);
    const char *equals = strchr(text, '=');
    char *end;
    const int at = link_named(diag, equals ? arena_strndup(arena, text, (size_t)(equals - text)) : text);
    if (at < 0)
        return;
    const LinkRow *field = &link_fields[at];
    const double value = equals ? strtod(equals + 1, &end) : 0;
    const bool number = equals && end != equals + 1 && !*end && value >= field->least && value <= field->most;
    if (!number || (field->whole && value != floor(value)))
        diag_error(diag, (Span){0}, "--link %s takes a %snumber from %g to %g, not '%s'", field->name,
                   field->whole ? "whole " : "", field->least, field->most, equals ? equals + 1 : "");
    else if (links->given[at])
        diag_error(diag, (Span){0}, "--link has '%s' twice", field->name);
    links->at[at] = value;
    links->given[at] = true;
}

bool links_parse(Diag *diag, const char *text, Links *links) {
    const int before = diag_errors(diag);
    for (int i = 0; i < LINK_FIELDS; i++) {
        links->at[i] = link_fields[i].value;
        links->given[i] = false;
    }
    for (const char *part = text, *comma; part; part = comma ? comma + 1 : NULL) {
        comma = strchr(part, ',');
        const size_t length = comma ? (size_t)(comma - part) : strlen(part);
        if (length)
            parse_link(diag, arena_strndup(diag_arena(diag), part, length), links);
        else
            diag_error(diag, (Span){0}, "--link '%s' has an empty part; %s", text, link_syntax);
    }
    return diag_errors(diag) == before;
}

/* ---- the model ---- */

typedef struct Scaling {
    const Links *links;
    double shard, update; /* seconds */
    double sums;          /* bytes */
    double memory;        /* bytes a second */
    bool flat;            /* sums go piece by piece to whose they are */
    int shards;           /* of the batch; 1: it grows with the GPUs */
} Scaling;

typedef struct Moving {
    double seconds, sent; /* bytes of each GPU */
} Moving;

static double exchange_seconds(const Scaling *s, bool inside, double bytes) {
    const double *at = s->links->at;
    return 1e-6 * at[inside ? LINK_INSIDE_US : LINK_BETWEEN_US] +
           bytes / (1e9 * at[inside ? LINK_INSIDE : LINK_BETWEEN]);
}

/* All pairs of GPUs whose numbers differ in the bit are of one host each. */
static bool stays_inside(const Scaling *s, int gpus, int bit) {
    const int host = (int)s->links->at[LINK_HOST];
    return gpus <= host || host % (2 * bit) == 0;
}

/* The additions read two pieces of memory and write one. */
static Moving tree_sums(const Scaling *s, int gpus) {
    Moving all = {0, 0};
    for (int bit = 1; bit < gpus; bit *= 2) {
        const double piece = s->sums / (2 * bit);
        all.seconds += 2 * exchange_seconds(s, stays_inside(s, gpus, bit), piece) + 3 * piece / s->memory;
        all.sent += 2 * piece;
    }
    return all;
}

/* 2, 4 or 8 of one host, which reach each other's memory. */
static bool are_peers(const Scaling *s, int gpus) {
    return gpus > 1 && gpus <= MTC_MAX_PEERS && gpus <= s->links->at[LINK_HOST] && !s->flat;
}

/* Each sends all that it has to all others; or reads from all the part that is its own, and writes it into the memory of all. */
static Moving peer_sums(const Scaling *s, int gpus) {
    const double *at = s->links->at, meeting = 1e-6 * at[LINK_MEETING_US];
    const bool mail = s->sums <= MTC_MAIL_BYTES;
    const double moved = s->sums * (gpus - 1) * (mail ? 1 : 2.0 / gpus);
    return (Moving){(mail ? 1 : 2) * meeting + moved / (1e9 * at[LINK_INSIDE]), moved};
}

/* A ring of all GPUs, of which each host enters and leaves by all of its ports at once; each turn takes as long as its slowest link. */
static double ring_seconds(const Scaling *s, int gpus) {
    const double *at = s->links->at;
    const bool inside = gpus <= at[LINK_HOST];
    const double ports = at[LINK_BETWEEN] * at[LINK_HOST],
                 slowest = inside || ports > at[LINK_INSIDE] ? at[LINK_INSIDE] : ports;
    const double turn = 1e-6 * at[inside ? LINK_INSIDE_US : LINK_BETWEEN_US] + s->sums / gpus / (1e9 * slowest);
    return 2 * (gpus - 1) * turn;
}

/* Shards of one GPU come together two by two as they are computed; then these are added up in its memory: a copy, or a sum. */
static double work_seconds(const Scaling *s, int gpus) {
    const int own = s->shards > 1 ? s->shards / gpus : 1, pairs = (own + 1) / 2;
    return own * s->shard + (pairs - 1) * 5 * s->sums / s->memory + s->update;
}

/* ---- the table ---- */

static const char *seconds_text(Arena *arena, double seconds) {
    return seconds < 1e-3 ? arena_printf(arena, "%.1f us", seconds * 1e6)
           : seconds < 1  ? arena_printf(arena, "%.2f ms", seconds * 1e3)
                          : arena_printf(arena, "%.2f s", seconds);
}

static const char *size_text(Arena *arena, double bytes) {
    return bytes < 1e6   ? arena_printf(arena, "%.1f KB", bytes / 1e3)
           : bytes < 1e9 ? arena_printf(arena, "%.1f MB", bytes / 1e6)
                         : arena_printf(arena, "%.2f GB", bytes / 1e9);
}

static void print_row(const Scaling *s, int gpus, double examples, Text *out) {
    const Moving tree = are_peers(s, gpus) ? peer_sums(s, gpus) : tree_sums(s, gpus);
    const double alone = work_seconds(s, 1), work = work_seconds(s, gpus), step = work + tree.seconds;
    text_printf(out, "  %5d %6.0f %10.0f %11s %11s %11s %11s %11s %13.1f %10.1f%%\n", gpus,
                ceil(gpus / s->links->at[LINK_HOST]), examples, seconds_text(out->arena, work),
                seconds_text(out->arena, tree.seconds), seconds_text(out->arena, step),
                size_text(out->arena, tree.sent), seconds_text(out->arena, ring_seconds(s, gpus)), examples / step,
                100 * alone / step / (s->shards > 1 ? gpus : 1));
}

static const char *origin_of(const Links *links, LinkField a, LinkField b, const char *text) {
    return links->given[a] && links->given[b]   ? "as --link says"
           : links->given[a] || links->given[b] ? "one of them as --link says"
                                                : text;
}

static void print_links(const Links *links, Text *out) {
    const double *at = links->at;
    text_printf(
        out, "  inside a host: %.0f GPUs, %g GB/s each way, %g us an exchange (%s)\n", at[LINK_HOST], at[LINK_INSIDE],
        at[LINK_INSIDE_US],
        origin_of(links, LINK_INSIDE, LINK_INSIDE_US, "fitted to an all-reduce of two H200s over NVLink, within 6%"));
    text_printf(out, "  in each other's memory, up to %d GPUs of a host: %g us a meeting (%s)\n", MTC_MAX_PEERS,
                at[LINK_MEETING_US],
                links->given[LINK_MEETING_US] ? "as --link says" : "by a step of mnist.mt on two H200s");
    text_printf(out, "  between hosts: %g GB/s each way for each GPU, %g us an exchange (%s)\n", at[LINK_BETWEEN],
                at[LINK_BETWEEN_US],
                origin_of(links, LINK_BETWEEN, LINK_BETWEEN_US, "assumed: a port of 400 Gb/s for each GPU"));
}

static double step_seconds(const Program *program) {
    return program ? program->estimate[program->schedule] : 0;
}

void scaling_print(const Plan *plan, const Links *links, Text *out) {
    const Module *module = plan->programs[PROGRAM_TRAIN]->graph->module;
    const Machine *machine = plan->programs[PROGRAM_TRAIN]->machine;
    const PlanSums sums = plan_sums(plan, module);
    const Scaling s = {.links = links,
                       .shard = step_seconds(plan->programs[PROGRAM_TRAIN]),
                       .update = step_seconds(plan_program(plan, module->update)),
                       .sums = (double)(sums.end - sums.begin),
                       .memory = machine->bandwidth,
                       .flat = plan->flat.bytes > 0,
                       .shards = module->shards};
    text_printf(out, "%s: a training step on several GPUs, planned for %s (sm_%d); all of it is estimated\n",
                module->name, machine->name, machine->number);
    if (s.shards > 1)
        text_printf(out, "  a batch of %lld examples in %d shards of %lld: GPUs have equally many\n",
                    (long long)module->whole_batch, s.shards, (long long)module->batch);
    else
        text_printf(out,
                    "  each GPU has a shard of %lld examples: the batch grows with the GPUs; --shards N keeps it\n",
                    (long long)module->batch);
    text_printf(out, "  a shard %s, an update %s, then sums of %s: as if nothing went on meanwhile\n",
                seconds_text(out->arena, s.shard), seconds_text(out->arena, s.update), size_text(out->arena, s.sums));
    print_links(links, out);
    text_printf(out, "\n  %5s %6s %10s %11s %11s %11s %11s %11s %13s %11s\n", "GPUs", "hosts", "examples", "work",
                "sums", "step", "each sends", "ring's sums", "examples/s", "efficiency");
    for (int gpus = 1; gpus <= MOST_GPUS; gpus *= 2)
        if (s.shards == 1 || s.shards % gpus == 0)
            print_row(&s, gpus, s.shards > 1 ? (double)module->whole_batch : (double)module->batch * gpus, out);
}
