/* Slots are placed one after the other, each at the lowest (first fit) or tightest (best fit) free place among the slots
 * placed before that live at the same time. No order is best for every program; a few are tried, and the smallest result
 * is kept. */
#include "plan/place.h"

#include <stdlib.h>

int64_t aligned_bytes(int64_t bytes) {
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

int64_t stored_bytes(const Type *type, int real_bytes) {
    return type_elements(type) * (type->dtype == DT_F32 ? real_bytes : dtype_info[type->dtype].bytes);
}

static Slots slots_of(Arena *arena, const Liveness *live, int real_bytes) {
    Slots slots = {.of_value = NEW_ARRAY(arena, int, live->values.count)};
    for (int i = 0; i < live->values.count; i++) {
        const LiveValue *value = &live->values.at[i];
        if (value->over >= 0) {
            slots.of_value[i] = slots.of_value[value->over];
            slots.all.at[slots.of_value[i]].last = value->last;
            continue;
        }
        slots.of_value[i] = slots.all.count;
        int64_t bytes = aligned_bytes(stored_bytes(&value->node->type, real_bytes));
        VEC_PUSH(arena, &slots.all, ((Slot){bytes, value->at, value->first, value->last, i, value->at >= 0}));
    }
    return slots;
}

static int sign(int64_t difference) {
    return (difference > 0) - (difference < 0);
}

static int64_t area(const Slot *slot) {
    return slot->bytes * (slot->last - slot->first + 1);
}

static int by_size(const void *a, const void *b) {
    const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
    return x->bytes != y->bytes ? sign(y->bytes - x->bytes) : x->rank - y->rank;
}

static int by_area(const void *a, const void *b) {
    const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
    return area(x) != area(y) ? sign(area(y) - area(x)) : x->rank - y->rank;
}

static int by_length(const void *a, const void *b) {
    const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
    int longer = (y->last - y->first) - (x->last - x->first);
    return longer ? longer : by_size(a, b);
}

static int by_time(const void *a, const void *b) {
    const Slot *x = *(Slot *const *)a, *y = *(Slot *const *)b;
    return x->first != y->first ? x->first - y->first : by_size(a, b);
}

static bool live_together(const Slot *a, const Slot *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Walks the gaps between `placed` (by offset) that live together with `slot`. */
static int64_t find_gap(Slot *const *placed, int count, const Slot *slot, bool best_fit) {
    int64_t end = 0, chosen = -1, tightest = INT64_MAX;
    for (int i = 0; i < count; i++) {
        if (!live_together(placed[i], slot))
            continue;
        int64_t gap = placed[i]->offset - end;
        if (gap >= slot->bytes && gap < tightest) {
            chosen = end;
            tightest = best_fit ? gap : 0;
        }
        if (placed[i]->offset + placed[i]->bytes > end)
            end = placed[i]->offset + placed[i]->bytes;
    }
    return chosen >= 0 ? chosen : end;
}

static void insert_by_offset(Slot **placed, int count, Slot *slot) {
    int at = count;
    for (; at > 0 && placed[at - 1]->offset > slot->offset; at--)
        placed[at] = placed[at - 1];
    placed[at] = slot;
}

/* Sets the offset of every slot that is not fixed, which come first; returns the bytes needed. */
static int64_t place(Slot **order, Slot **placed, int count, bool best_fit) {
    int64_t high = 0;
    for (int i = 0; i < count; i++) {
        order[i]->offset = order[i]->fixed ? order[i]->offset : find_gap(placed, i, order[i], best_fit);
        insert_by_offset(placed, i, order[i]);
        if (order[i]->offset + order[i]->bytes > high)
            high = order[i]->offset + order[i]->bytes;
    }
    return high;
}

/* Fixed slots first, in any order; returns how many they are. */
static int list_slots(Slots *slots, Slot **order) {
    int fixed = 0, listed = 0;
    for (int i = 0; i < slots->all.count; i++)
        if (slots->all.at[i].fixed)
            order[fixed++] = &slots->all.at[i];
    for (int i = 0; i < slots->all.count; i++)
        if (!slots->all.at[i].fixed)
            order[fixed + listed++] = &slots->all.at[i];
    return fixed;
}

static int64_t place_best(Arena *arena, Slots *slots) {
    static int (*const orders[])(const void *, const void *) = {by_size, by_area, by_length, by_time};
    enum { TRIES = 2 * sizeof orders / sizeof *orders };
    int count = slots->all.count;
    Slot **order = NEW_ARRAY(arena, Slot *, count), **placed = NEW_ARRAY(arena, Slot *, count);
    int64_t least = INT64_MAX;
    int best = 0;
    for (int try = 0; try <= TRIES; try++) {
        int chosen = try < TRIES ? try : best
            ; /* the last round repeats the best one */
        const int fixed = list_slots(slots, order);
        qsort(order + fixed, (size_t)(count - fixed), sizeof *order, orders[chosen / 2]);
        int64_t bytes = place(order, placed, count, chosen % 2);
        if (bytes < least) {
            least = bytes;
            best = chosen;
        }
    }
    return least;
}

Slots place_values(Arena *arena, const Liveness *live, int real_bytes) {
    Slots slots = slots_of(arena, live, real_bytes);
    slots.bytes = place_best(arena, &slots);
    return slots;
}

int64_t busiest_phase(const Slots *slots, int phases) {
    int64_t most = 0;
    for (int phase = 0; phase < phases; phase++) {
        int64_t live = 0;
        for (int i = 0; i < slots->all.count; i++)
            if (slots->all.at[i].first <= phase && phase <= slots->all.at[i].last)
                live += slots->all.at[i].bytes;
        most = live > most ? live : most;
    }
    return most;
}
