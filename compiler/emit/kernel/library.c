/* Kernels that are functions of kernels_lib: what they are called with, and what they compute. */
#include "emit/kernel/library.h"

#include "emit/kernel/kernel_text.h"

#include <stdlib.h>

static const CallDef *definition(const Kernel *kernel) {
    return kernel->call->op->call;
}

/* "$01" is axis 1 of operand 0, "$r0" axis 0 of the result. */
static const char *extent_at(Emitter *e, const Node *call, const char *place) {
    const Node *of = place[1] == 'r' ? call : call->in[place[1] - '0'];
    Shape shape = sizes_shape(e->sizes, of);
    return shape_symbol(e->arena, &shape, place[2] - '0');
}

/* Behind ".batch = ". */
static const char *behind_name(const char *at) {
    return at + strcspn(at, "=") + strlen("= ");
}

const char *library_shape(Emitter *e, const Kernel *kernel, bool named) {
    Text text = TEXT(e->arena);
    for (const char *at = definition(kernel)->arguments(e->arena, kernel->call); *at;) {
        if (*at == '.' && !named) {
            at = behind_name(at);
            continue;
        }
        if (*at != '$') {
            text_putc(&text, *at++);
            continue;
        }
        text_puts(&text, extent_at(e, kernel->call, at));
        at += 3;
    }
    return text_string(&text);
}

/* The second result, or NULL where nobody reads it. */
static const Node *part_of(const Kernel *kernel) {
    return kernel->nodes.count > 1 ? kernel->nodes.at[1] : NULL;
}

static const char *member_of(Emitter *e, const Node *n) {
    return arena_printf(e->arena, "%s%s", e->dialect->member, tensor_name(e, plan_buffer(e->plan, n)));
}

/* A buffer, or a run-time number. */
static const char *operand_of(Emitter *e, const Node *n) {
    return n->op->flags & OP_SCALAR ? n->op->c : member_of(e, n);
}

const char *library_arguments(Emitter *e, const Kernel *kernel) {
    const Node *call = kernel->call, *part = part_of(kernel);
    Text text = TEXT(e->arena);
    for (int k = 0; k < call->inputs; k++)
        text_printf(&text, "%s, ", operand_of(e, kernel->operands[k]));
    text_puts(&text, member_of(e, call));
    if (definition(kernel)->part)
        text_printf(&text, ", %s", part ? member_of(e, part) : e->dialect->null);
    if (call->op->attrs & ATTR_VALUE)
        text_printf(&text, ", %s", literal(e, call->attr.value, DT_F32));
    return text_string(&text);
}

/* ---- comments ---- */

/* As the model calls what is read there; else as the plan does. */
static const char *label_of(const Emitter *e, const Node *n, const Node *stored) {
    if (n->op->flags & OP_SCALAR)
        return n->op->name;
    return n->name ? n->name : stored->name ? stored->name : plan_buffer(e->plan, stored)->label;
}

static const char *meaning_of(Emitter *e, const Kernel *kernel, char place) {
    const Node *call = kernel->call;
    if (place == 'v')
        return literal(e, call->attr.value, DT_F32);
    return place == 'r' ? label_of(e, call, call) : label_of(e, call->in[place - '0'], kernel->operands[place - '0']);
}

static const char *equations(Emitter *e, const Kernel *kernel) {
    Text text = TEXT(e->arena);
    for (const char *at = definition(kernel)->equation(e->arena, kernel->call); *at; at++)
        if (*at == '$')
            text_puts(&text, meaning_of(e, kernel, *++at));
        else
            text_putc(&text, *at);
    return text_string(&text);
}

void write_library_equations(Emitter *e, const Kernel *kernel, Writer *out) {
    Emitter plain = *e;
    plain.mathematics = true;
    for (const char *line = equations(&plain, kernel); *line;) {
        size_t length = strcspn(line, "\n");
        write_comment(out, 8, arena_printf(e->arena, "    %.*s", (int)length, line));
        line += length + (line[length] == '\n');
    }
}

/* ---- headers ---- */

static int by_file(const void *a, const void *b) {
    return strcmp(((const Include *)a)->file, ((const Include *)b)->file);
}

static bool is_included(const Include *includes, int count, const char *file) {
    for (int k = 0; k < count; k++)
        if (strcmp(includes[k].file, file) == 0)
            return true;
    return false;
}

void write_includes(Emitter *e, const Include *includes, int of_dialect, Writer *out) {
    int kernels = 0, width = 0;
    for (int p = 0; p < e->plan->program_count; p++)
        kernels += e->programs[p]->kernels.count;
    Include *all = NEW_ARRAY(e->arena, Include, of_dialect + kernels);
    int count = 0;
    for (int k = 0; k < of_dialect; k++)
        if (includes[k].wanted)
            all[count++] = includes[k];
    for (int p = 0; p < e->plan->program_count; p++)
        for (int k = 0; k < e->programs[p]->kernels.count; k++) {
            const Kernel *kernel = e->programs[p]->kernels.at[k];
            if (kernel->cls != KERNEL_CALL)
                continue;
            const char *file = arena_printf(e->arena, e->dialect->header, definition(kernel)->header);
            if (!is_included(all, count, file))
                all[count++] = (Include){file, definition(kernel)->about, true};
        }
    qsort(all, (size_t)count, sizeof *all, by_file);
    if (precision_dtype(e->module->precision) == DT_F16)
        write_line(out, "#define MTC_FLOAT16 // numbers of 16 bits are IEEE's, float16");
    for (int k = 0; k < count; k++)
        width = (int)strlen(all[k].file) > width ? (int)strlen(all[k].file) : width;
    for (int k = 0; k < count; k++)
        write_noted(out, width + (int)strlen("#include \"\""), arena_printf(e->arena, "#include \"%s\"", all[k].file),
                    all[k].note);
}
