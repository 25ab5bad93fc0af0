/* What a launch has, and what it is called. */
#include "emit/cuda/launch.h"

#include "emit/cuda/called.h"
#include "emit/kernel/expr.h"

const char *group_tiles(Emitter *e, const Group *group) {
    const char *times = group->count > 1 ? arena_printf(e->arena, "%d * ", group->count) : "";
    return arena_printf(e->arena, "%s%s", times, own_constant(e, group->function, "tiles"));
}

const Group *group_at(const Launch *launch, int group) {
    const int behind = group - launch->groups.count - launch->before.count;
    return behind >= 0                    ? &launch->behind.at[behind]
           : group < launch->groups.count ? &launch->groups.at[group]
                                          : &launch->before.at[0];
}

int all_groups(const Launch *launch) {
    return launch->groups.count + launch->before.count + launch->behind.count;
}

Walk walk_of(const Emitter *e, const Launch *launch, int group) {
    Walk walk = {.first = group_at(launch, group)->first, .even = true};
    for (int k = 0; k < e->launches.count; k++) {
        const Launch *at = &e->launches.at[k];
        if (&e->launches.at[at->like] != launch)
            continue;
        int first = group_at(at, group)->first;
        walk.step = at->again == 1 ? first - walk.first : walk.step;
        walk.even &= first == walk.first + at->again * walk.step;
    }
    return walk;
}

/* "3", "batch.again", "1 + 2 * batch.again"; "place[1]" where the launch has a table of them. Nothing: 0. */
static const char *first_place(Emitter *e, const Launch *launch, int group) {
    const Walk walk = walk_of(e, launch, group);
    const char *first = walk.first ? arena_printf(e->arena, "%d", walk.first) : "";
    if (!walk.even)
        return arena_printf(e->arena, "place[%d]", group);
    if (!walk.step)
        return first;
    const char *times = walk.step == 1 ? "" : arena_printf(e->arena, "%d * ", walk.step);
    return arena_printf(e->arena, "%s%s%sbatch.again", first, walk.first ? " + " : "", times);
}

const char *place_of(Emitter *e, const Launch *launch, int group) {
    const Group *g = group_at(launch, group);
    const char *first = first_place(e, launch, group);
    if (g->count == 1)
        return *first ? first : "0";
    return arena_printf(e->arena, "%s%stile / %s", first, *first ? " + " : "", own_constant(e, g->function, "tiles"));
}

bool takes_shared(const Kernel *kernel) {
    if (kernel->cls == KERNEL_CALL)
        return true;
    if (kernel->cls == KERNEL_CONTRACT)
        return product_feed(kernel) != FEED_THIN;
    return !has_warps(kernel) || keeps_vectors(kernel);
}

const char *most_bytes(Emitter *e, const Launch *launch) {
    Text list = TEXT(e->arena);
    int count = 0;
    for (int g = 0; g < all_groups(launch); g++) {
        const Function *f = group_at(launch, g)->function;
        if (takes_shared(f->kernel))
            text_printf(&list, "%s%s", count++ ? ", " : "", own_constant(e, f, "shared_bytes"));
    }
    return count > 1 ? arena_printf(e->arena, "std::max({%s})", text_string(&list)) : count ? text_string(&list) : "0";
}
