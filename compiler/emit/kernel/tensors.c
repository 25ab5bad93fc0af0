#include "emit/kernel/tensors.h"

#include "emit/kernel/repeat.h"

/* ---- flat tensors ---- */

static const Buffer *flat_buffer(const Emitter *e, const Node *leaf) {
    const bool keeps = leaf->op->table == TABLE_WEIGHT || leaf->op->table == TABLE_STATE;
    const Buffer *buffer = keeps ? plan_buffer(e->plan, leaf) : NULL;
    return buffer && buffer->flat ? buffer : NULL;
}

static const Buffer *weight_of(const Emitter *e, const Buffer *flat) {
    const int weight = flat->kind == BUFFER_WEIGHT ? flat->index : e->module->states.at[flat->index].of;
    return &e->plan->buffers.at[e->plan->of_weight[weight]];
}

static bool computes_elements(const Kernel *kernel, const Buffer *flat) {
    return kernel->cls == KERNEL_LOOP && kernel->stages.count == 1 && !kernel->inner && kernel->full.rank == 1 &&
           kernel->full.dim[0] == flat->type.dim[0];
}

const Buffer *flat_of_kernel(const Emitter *e, const Kernel *kernel) {
    const Buffer *flat = NULL;
    if (!e->plan->flat.bytes)
        return NULL;
    for (int k = 0; k < kernel->loads.count && !flat; k++)
        flat = flat_buffer(e, kernel->loads.at[k]);
    for (int k = 0; k < kernel->roots.count && !flat; k++)
        flat = flat_buffer(e, kernel->roots.at[k]->in[0]);
    if (flat && !computes_elements(kernel, flat))
        ICE("kernel %s is no loop over the elements of %s", kernel->name, flat->name);
    return flat ? weight_of(e, flat) : NULL;
}

/* ---- names ---- */

void tensors_name(Emitter *e) {
    const Module *module = e->module;
    e->field = NEW_ARRAY(e->arena, const char *, module->fields.count);
    e->stride = NEW_ARRAY(e->arena, const char *, module->fields.count);
    e->tensor = NEW_ARRAY(e->arena, const char *, e->plan->buffers.count);
    e->knob = NEW_ARRAY(e->arena, const char *, module->knobs.count);
    for (int k = 0; k < module->fields.count; k++)
        e->field[k] = names_claim(&e->members, module->fields.at[k].name);
    for (int k = 0; k < module->fields.count; k++)
        if (module->fields.at[k].windows)
            e->stride[k] = names_claim(&e->members, arena_printf(e->arena, "%s_stride", e->field[k]));
    for (int k = 0; k < e->plan->buffers.count; k++)
        e->tensor[k] = names_claim(&e->members, e->plan->buffers.at[k].name);
    for (int k = 0; k < module->knobs.count; k++)
        if (!module->knobs.at[k].fixed)
            e->knob[k] = names_claim(&e->members, module->knobs.at[k].name);
}

/* For each buffer a node that lies in it: its shape has the symbols. */
static const Node **nodes_in_buffers(const Emitter *e) {
    const Node **nodes = NEW_ARRAY(e->arena, const Node *, e->plan->buffers.count);
    for (int p = 0; p < e->plan->program_count; p++)
        for (int k = 0; k < e->programs[p]->graph->nodes.count; k++) {
            const Buffer *buffer = plan_buffer(e->plan, e->programs[p]->graph->nodes.at[k]);
            if (buffer && !nodes[buffer - e->plan->buffers.at])
                nodes[buffer - e->plan->buffers.at] = e->programs[p]->graph->nodes.at[k];
        }
    return nodes;
}

static const Node *field_node(const Emitter *e, int field) {
    for (int p = 0; p < e->plan->program_count; p++)
        for (int k = 0; k < e->programs[p]->graph->nodes.count; k++) {
            const Node *n = e->programs[p]->graph->nodes.at[k];
            if (n->op->table == TABLE_FIELD && n->attr.index == field)
                return n;
        }
    return NULL;
}

static const char *extents(Emitter *e, const Node *n, const char *first) {
    Text text = TEXT(e->arena);
    Shape shape = sizes_shape(e->sizes, n);
    for (int axis = 0; axis < shape.type.rank; axis++)
        text_printf(&text, "%s%s", axis ? ", " : "[",
                    axis == 0 && first ? first : shape_symbol(e->arena, &shape, axis));
    if (shape.type.rank)
        text_putc(&text, ']');
    return text_string(&text);
}

static void add_stride(Emitter *e, const char *arrow, int field, Members *members) {
    const char *value = arena_printf(e->arena, "run%sdata.stride[%d]", arrow, field);
    const char *note = arena_printf(e->arena, "elements from an example of %s to the next", e->field[field]);
    VEC_PUSH(e->arena, members, ((Member){"int64_t ", e->stride[field], value, note}));
}

static void add_fields(Emitter *e, const char *arrow, Members *members) {
    for (int k = 0; k < e->module->fields.count; k++) {
        const Node *n = field_node(e, k);
        if (!n)
            continue;
        const char *type = arena_printf(e->arena, "const %s *", dtype_info[e->module->fields.at[k].stored].c_name);
        const char *value = arena_printf(e->arena, "(%s)run%sdata.field[%d]", type, arrow, k);
        const char *note =
            arena_printf(e->arena, "data set: %s%s", extents(e, n, "examples"), e->stride[k] ? ", which overlap" : "");
        VEC_PUSH(e->arena, members, ((Member){type, e->field[k], value, note}));
        if (e->stride[k])
            add_stride(e, arrow, k, members);
    }
}

/* "[BATCH, H], in place of h_pre": a member too. */
static const char *buffer_note(Emitter *e, const Buffer *buffer, const Node *n, const bool *mentioned) {
    const char *note = extents(e, n, NULL);
    for (int k = 0; buffer->in_place_of && k < e->plan->buffers.count; k++)
        if (mentioned[k] && strcmp(e->plan->buffers.at[k].name, buffer->in_place_of) == 0)
            return arena_printf(e->arena, "%s, in place of %s", note, e->tensor[k]);
    return note;
}

/* By row of plan->buffers: some function reaches it as a tensor of all; one with several places has its own. */
static bool *mentioned_buffers(const Emitter *e) {
    bool *mentioned = NEW_ARRAY(e->arena, bool, e->plan->buffers.count);
    for (int k = 0; k < e->functions.count; k++)
        for (int b = 0; b < e->functions.at[k].buffers.count; b++)
            mentioned[e->functions.at[k].buffers.at[b]] |= !has_own_tensors(&e->functions.at[e->functions.at[k].like]);
    return mentioned;
}

/* "own_states(run, 0, 4096)": as if all were there. */
static const char *own_states(const Emitter *e, const Buffer *buffer) {
    const PlanFlat *flat = &e->plan->flat;
    const int64_t place = buffer->offset - flat->states - (buffer->slot - 1) * flat->bytes;
    return arena_printf(e->arena, "own_states(run, %d, %lld)", buffer->slot - 1, (long long)place);
}

static void add_part(Emitter *e, const char *arrow, Members *members) {
    static const char *const name[] = {"part_begin", "part_end"},
                             *const note[] = {
                                 "of all weights that are updated element by element, one behind the other:",
                                 "the elements of this process"};
    for (int k = 0; k < 2 && e->plan->flat.bytes; k++)
        VEC_PUSH(e->arena, members,
                 ((Member){"int64_t ", name[k], arena_printf(e->arena, "run%spart[%d]", arrow, k), note[k]}));
}

static void add_buffers(Emitter *e, const char *of, Members *members) {
    const Node **nodes = nodes_in_buffers(e);
    const bool *mentioned = mentioned_buffers(e);
    for (int k = 0; k < e->plan->buffers.count; k++) {
        const Buffer *buffer = &e->plan->buffers.at[k];
        const Node *n = nodes[k];
        if (!n || !mentioned[k])
            continue;
        const DType dtype = buffer->type.dtype;
        const char *type = arena_printf(e->arena, "%s %s", c_type(e, dtype), pointer_mark(e, dtype));
        const char *value = buffer->slot ? arena_printf(e->arena, "(%s *)%s", c_type(e, dtype), own_states(e, buffer))
                                         : arena_printf(e->arena, "(%s *)(%sarena + %lld)", c_type(e, dtype), of,
                                                        (long long)buffer->offset);
        VEC_PUSH(e->arena, members, ((Member){type, e->tensor[k], value, buffer_note(e, buffer, n, mentioned)}));
    }
}

static void add_knobs(Emitter *e, const char *arrow, Members *members) {
    const Module *module = e->module;
    const char *type = e->options->f64 ? "double " : "float ", *table = e->options->f64 ? "exact_knob" : "knob";
    for (int k = 0, flag = 0; k < module->knobs.count; k++) {
        if (module->knobs.at[k].fixed)
            continue;
        const char *value = arena_printf(e->arena, "run%s%s[%d]", arrow, table, flag++);
        VEC_PUSH(e->arena, members, ((Member){type, e->knob[k], value, module->knobs.at[k].help}));
    }
}

Members shared_members(Emitter *e, const char *arrow) {
    Members members = {0};
    add_fields(e, arrow, &members);
    add_knobs(e, arrow, &members);
    return members;
}

Members tensors_members(Emitter *e, const char *arrow, const char *of) {
    Members members = {0};
    add_fields(e, arrow, &members);
    add_buffers(e, of, &members);
    add_part(e, arrow, &members);
    add_knobs(e, arrow, &members);
    return members;
}

/* "float *h;", or "float *h = (float *)(arena + 256);" */
static const char *declaration_of(Emitter *e, const Member *member, bool valued) {
    const char *value = valued ? arena_printf(e->arena, " = %s", member->value) : "";
    return arena_printf(e->arena, "%s%s%s;", member->type, member->name, value);
}

/* A declaration, and what is said about it; or NULL or nothing. */
typedef struct Declared {
    const char *declaration, *note;
} Declared;

/* So wide may the declaration be for its note to stand behind it. */
static int widest_declaration(const Declared *member) {
    enum { INDENT = 4, SLASHES = 4 };
    return LONGEST_LINE - INDENT - SLASHES - (int)strlen(member->note);
}

static int declared_width(const Declared *member) {
    return (int)strlen(member->declaration);
}

/* Behind the declaration; one that is too long for that goes above it. */
static bool has_note(const Declared *member) {
    return member->note && *member->note && declared_width(member) <= widest_declaration(member);
}

/* Notes stand below one another, in a run that begins at k and ends before the first that has no room there. */
static int aligned_notes(const Declared *members, int count, int k, int *width) {
    int widest = LONGEST_LINE;
    for (*width = 0; k < count && has_note(&members[k]); k++) {
        int own = declared_width(&members[k]), room = widest_declaration(&members[k]);
        if (own > widest || room < *width)
            break;
        *width = own > *width ? own : *width;
        widest = room < widest ? room : widest;
    }
    return k;
}

void write_members(Emitter *e, const Members *members, bool valued, Writer *out) {
    Declared *declared = NEW_ARRAY(e->arena, Declared, members->count);
    for (int k = 0; k < members->count; k++)
        declared[k] = (Declared){declaration_of(e, &members->at[k], valued), members->at[k].note};
    int width = 0, end = 0;
    for (int k = 0; k < members->count; k++) {
        const Declared *member = &declared[k];
        if (k >= end)
            end = aligned_notes(declared, members->count, k, &width);
        if (has_note(member)) {
            write_noted(out, width, member->declaration, member->note);
            continue;
        }
        if (member->note && *member->note)
            write_comment(out, 0, member->note);
        write_line(out, "%s", member->declaration);
    }
}
