#include "emit/kernel/exchanges.h"

#include "emit/kernel/table.h"

void write_exchanges(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    RowTable table = {.arena = e->arena};
    for (int p = 0; p < train->phases.count; p++)
        for (int k = 0; k < train->phases.at[p].kernels.count; k++) {
            const Kernel *kernel = train->phases.at[p].kernels.at[k];
            if (!kernel_waits_for_shards(kernel))
                continue;
            const Buffer *part = plan_buffer(e->plan, kernel->operands[0]);
            table_row(&table, part->label);
            table_number(&table, NULL, p);
            table_number(&table, NULL, part->offset);
            table_number(&table, NULL, type_elements(&part->type));
        }
    if (!table.rows.count)
        return;
    write_line(out, "// before a phase, so many numbers at a place of the arena become their sums over all shards");
    write_table(&table, "static const MtcExchange exchange_table[]", out);
    write_blank(out);
}

void write_buckets(Emitter *e, Writer *out) {
    const Program *train = e->programs[PROGRAM_TRAIN];
    RowTable table = {.arena = e->arena};
    for (int b = 0; b < train->buckets.count; b++) {
        const PlanSums part = b + 1 < train->buckets.count ? plan_bucket(e->plan, b) : (PlanSums){0, 0};
        table_row(&table, NULL);
        table_number(&table, NULL, train->buckets.at[b].phase + 1);
        table_number(&table, NULL, part.begin);
        table_number(&table, NULL, part.end - part.begin);
    }
    if (!table.rows.count)
        return;
    write_line(out, "// before a phase, so many bytes of sums at a place of the arena are complete; those of the row "
                    "before are added up");
    write_table(&table, "static const MtcBucket bucket_table[]", out);
    write_blank(out);
}
