/* The plan as a picture: phases from left to right, the arena from top to bottom.
 *
 * Weights and optimizer state live always and are often far larger than the values, so they are bands of fixed height
 * above the part that is drawn to scale. */
#include "plan/plan.h"

enum { WIDTH = 960, LEFT = 96, TOP = 72, BAND = 34, SCALE = 420, COLUMN_GAP = 28, RIGHT = 16, BOTTOM = 64, LABEL = 24 };

typedef struct Picture {
    const Plan *plan;
    Text *out;
    double column; /* width of a phase */
} Picture;

static const char STYLE[] =
    "  <style>\n"
    "    text { font: 12px sans-serif; fill: #222; }\n"
    "    .small { font-size: 10px; fill: #666; }\n"
    "    rect { stroke: #fff; stroke-width: 1; }\n"
    "    line { stroke: #999; stroke-dasharray: 2 3; }\n"
    "    .weight { fill: #8fb3d9; } .state { fill: #b9a3d6; }\n"
    "    .v0 { fill: #f2b880; } .v1 { fill: #9ccfa0; } .v2 { fill: #e79a9a; } .v3 { fill: #8fc7cf; } .v4 { fill: "
    "#d9c77a; }\n"
    "    @media (prefers-color-scheme: dark) {\n"
    "      text { fill: #ddd; } .small { fill: #aaa; } rect { stroke: #222; } rect + text { fill: #222; }\n"
    "    }\n"
    "  </style>\n";

static double left_of(const Picture *p, int program, int phase) {
    int before = 0;
    for (int i = 0; i < program; i++)
        before += p->plan->programs[i]->phases.count;
    return LEFT + (before + phase) * p->column + program * COLUMN_GAP;
}

static int64_t values_offset(const Plan *plan) {
    return plan->weight_bytes + plan->state_bytes;
}

static double top_of(const Picture *p, int64_t offset) {
    const Plan *plan = p->plan;
    double scale = plan->value_bytes ? (double)SCALE / (double)plan->value_bytes : 0;
    return TOP + 2 * BAND + (double)(offset - values_offset(plan)) * scale;
}

static void band(const Picture *p, const char *class, const char *label, int row, int64_t bytes) {
    double y = TOP + row * BAND, right = WIDTH - RIGHT;
    text_printf(p->out, "  <rect class=\"%s\" x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\"/>\n", class, LEFT, y,
                right - LEFT, BAND - 4);
    text_printf(p->out, "  <text x=\"%d\" y=\"%.1f\">%s, %s (not to scale)</text>\n", LEFT + 8, y + 19, label,
                text_bytes(p->out->arena, bytes));
}

static void value(const Picture *p, const Buffer *buffer, int colour) {
    Arena *arena = p->out->arena;
    double x = left_of(p, buffer->program, buffer->first), y = top_of(p, buffer->offset);
    double width = left_of(p, buffer->program, buffer->last + 1) - x;
    double height = top_of(p, buffer->offset + buffer->bytes) - y;
    text_printf(p->out, "  <g><title>%s: %s, %lld bytes at %lld, phases %d-%d", buffer->name,
                type_graph_text(arena, &buffer->type), (long long)buffer->bytes, (long long)buffer->offset,
                buffer->first + 1, buffer->last + 1);
    if (buffer->in_place_of)
        text_printf(p->out, ", in place of %s", buffer->in_place_of);
    text_printf(p->out, "</title><rect class=\"v%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", colour, x,
                y, width, height);
    if (height >= 14 && width >= 7.0 * (double)strlen(buffer->name))
        text_printf(p->out, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", x + 6, y + height / 2 + 4, buffer->name);
    text_puts(p->out, "</g>\n");
}

/* Every how many phases there is room for a number: 1, 2, 5, 10, 20, 50, ... */
static int label_step(const Picture *p) {
    static const int factor[] = {1, 2, 5};
    int step = 1, power = 1;
    for (int i = 1; step * p->column < LABEL; i++) {
        power *= i % 3 == 0 ? 10 : 1;
        step = power * factor[i % 3];
    }
    return step;
}

/* The phases of a program along the bottom, each with the kernels that it runs as a tooltip. */
static void axis(const Picture *p, int which) {
    const Program *program = p->plan->programs[which];
    double bottom = TOP + 2 * BAND + SCALE;
    int step = label_step(p);
    text_printf(p->out, "  <text x=\"%.1f\" y=\"%.1f\">%s: phase</text>\n", left_of(p, which, 0), bottom + 36,
                program->prefix);
    for (int i = step - 1; i < program->phases.count; i += step) {
        double x = left_of(p, which, i);
        text_printf(p->out, "  <line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, TOP + 2 * BAND, x, bottom);
        text_printf(p->out, "  <text class=\"small\" x=\"%.1f\" y=\"%.1f\">%d<title>", x + p->column / 2 - 3,
                    bottom + 16, i + 1);
        for (int k = 0; k < program->phases.at[i].kernels.count; k++)
            text_printf(p->out, "%s%s", k ? ", " : "", program->phases.at[i].kernels.at[k]->name);
        text_puts(p->out, "</title></text>\n");
    }
}

/* Offsets at quarters of the values' part, in bytes from its start: behind large weights those from the start of the arena
 * would all read the same. */
static void ruler(const Picture *p) {
    for (int i = 0; i <= 4; i++) {
        int64_t offset = values_offset(p->plan) + p->plan->value_bytes * i / 4;
        text_printf(p->out, "  <text class=\"small\" x=\"8\" y=\"%.1f\">+ %s</text>\n", top_of(p, offset) + 4,
                    text_bytes(p->out->arena, offset - values_offset(p->plan)));
    }
}

static void title(const Picture *p) {
    Arena *arena = p->out->arena;
    text_puts(p->out, "  <text x=\"8\" y=\"24\" style=\"font-size: 15px\">Memory plan of ");
    text_xml(p->out, p->plan->programs[PROGRAM_TRAIN]->graph->module->name);
    text_printf(p->out, "</text>\n  <text x=\"8\" y=\"46\">arena %s; without sharing %s; floor %s</text>\n",
                text_bytes(arena, p->plan->arena_bytes), text_bytes(arena, p->plan->unshared_bytes),
                text_bytes(arena, p->plan->floor_bytes));
}

void plan_svg(const Plan *plan, Text *out) {
    int phases = 0, gaps = plan->program_count - 1;
    for (int i = 0; i < plan->program_count; i++)
        phases += plan->programs[i]->phases.count;
    Picture p = {plan, out, (double)(WIDTH - LEFT - RIGHT - gaps * COLUMN_GAP) / (phases ? phases : 1)};
    text_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\">\n", WIDTH,
                TOP + 2 * BAND + SCALE + BOTTOM);
    text_puts(out, STYLE);
    title(&p);
    band(&p, "weight", "weights", 0, plan->weight_bytes);
    band(&p, "state", "optimizer state", 1, plan->state_bytes);
    for (int i = 0; i < plan->program_count; i++)
        axis(&p, i);
    ruler(&p);
    for (int i = 0; i < plan->buffers.count; i++)
        if (plan->buffers.at[i].kind == BUFFER_VALUE)
            value(&p, &plan->buffers.at[i], i % 5);
    text_puts(out, "</svg>\n");
}
