/* The opcodes are those of Python's pickletools, protocols 2 to 5, which are the binary ones. */
#include "weights/pickle.h"

#include <stdio.h>

/* A value takes 64 bytes, an item 16, and a hostile file asks for either with a byte or two. */
enum { MOST_VALUES = 4 << 20, MOST_ITEMS = 8 << 20, DEEPEST = 1 << 20, LONGEST_INT = 255 };

typedef struct Reader {
    MtcFault *fault;
    Arena *arena;
    const char *path;
    const uint8_t *bytes, *at, *end;
    size_t offset; /* of the opcode that is read */
    const PickleGlobal *globals;
    int global_count;
    VEC(PickleValue *) stack;
    VEC(int) marks; /* heights of the stack */
    VEC(PickleValue *) memo;
    int values, items;
    const PickleValue *result;
} Reader;

typedef struct OpcodeRow {
    const char *name;
    bool (*run)(Reader *r, int argument); /* NULL: no file of weights needs it */
    int argument;                         /* a kind of value; how many bytes or values it takes */
} OpcodeRow;
static const OpcodeRow opcodes[256];

/* ---- faults ---- */

static bool refuse(Reader *r, const char *what) {
    mtc_fail(r->fault, MTC_BAD_DATA, "%s: at byte %zu, %s: %s", r->path, r->offset, opcodes[r->bytes[r->offset]].name,
             what);
    return false;
}

static const PickleValue *missing(Reader *r) {
    refuse(r, "the stack holds nothing that it could take");
    return NULL;
}

/* ---- bytes ---- */

static const uint8_t *take(Reader *r, uint64_t count) {
    const uint8_t *from = r->at;
    if (count > (size_t)(r->end - r->at)) {
        refuse(r, "the pickle ends within what belongs to it");
        return NULL;
    }
    r->at += count;
    return from;
}

/* Little-endian, of `width` bytes, at most 8. */
static bool take_number(Reader *r, int width, uint64_t *number) {
    const uint8_t *from = take(r, (uint64_t)width);
    *number = 0;
    for (int i = 0; from && i < width; i++)
        *number |= (uint64_t)from[i] << 8 * i;
    return from != NULL;
}

/* ---- values ---- */

static PickleValue *new_value(Reader *r, PickleKind kind) {
    if (r->values == MOST_VALUES) {
        refuse(r, "the pickle makes more than 4 million values: that is no file of weights");
        return NULL;
    }
    r->values++;
    PickleValue *value = NEW(r->arena, PickleValue);
    value->kind = kind;
    value->offset = (uint32_t)r->offset;
    return value;
}

static bool add_item(Reader *r, PickleValue *to, const PickleValue *value) {
    to->outside |= value->outside;
    if (to->kind == PICKLE_OPAQUE)
        return true; /* what its class does with items is not known */
    if (r->items == MOST_ITEMS)
        return refuse(r, "the pickle makes more than 8 million items: that is no file of weights");
    r->items++;
    PickleItem *item = NEW(r->arena, PickleItem);
    item->value = value;
    if (to->last)
        to->last->next = item;
    else
        to->first = item;
    to->last = item;
    to->size++;
    return true;
}

/* ---- the stack ---- */

static bool push(Reader *r, PickleValue *value) {
    if (!value)
        return false;
    if (r->stack.count == DEEPEST)
        return refuse(r, "the stack holds a million values: that is no file of weights");
    VEC_PUSH(r->arena, &r->stack, value);
    return true;
}

static int floor_of(const Reader *r) {
    return r->marks.count ? r->marks.at[r->marks.count - 1] : 0;
}

static PickleValue *top(Reader *r) {
    return r->stack.count > floor_of(r) ? r->stack.at[r->stack.count - 1] : (PickleValue *)missing(r);
}

static PickleValue *pop(Reader *r) {
    PickleValue *value = top(r);
    r->stack.count -= value != NULL;
    return value;
}

/* Where what was pushed behind the last mark begins; the mark is gone. -1: there is none. */
static int pop_mark(Reader *r) {
    if (!r->marks.count) {
        refuse(r, "there is no MARK before it");
        return -1;
    }
    return r->marks.at[--r->marks.count];
}

/* All that stands from `from` on goes into `to`. */
static bool collect(Reader *r, int from, PickleValue *to) {
    for (int i = from; to && i < r->stack.count; i++)
        if (!add_item(r, to, r->stack.at[i]))
            return false;
    r->stack.count = from;
    return to != NULL;
}

static bool op_of_marked(Reader *r, int kind) {
    const int from = pop_mark(r);
    if (from >= 0 && kind == PICKLE_DICT && (r->stack.count - from) % 2)
        return refuse(r, "the last key has no value");
    PickleValue *value = from < 0 ? NULL : new_value(r, (PickleKind)kind);
    return value && collect(r, from, value) && push(r, value);
}

static bool op_tuple(Reader *r, int count) {
    if (r->stack.count - floor_of(r) < count)
        return missing(r) != NULL;
    PickleValue *value = new_value(r, PICKLE_TUPLE);
    return value && collect(r, r->stack.count - count, value) && push(r, value);
}

/* What stands behind the last mark, or the last `count` values, goes into the value before them. */
static bool add_to(Reader *r, int kind, int from) {
    PickleValue *to = from > floor_of(r) ? r->stack.at[from - 1] : (PickleValue *)missing(r);
    if (!to)
        return false;
    if ((int)to->kind != kind && to->kind != PICKLE_OPAQUE)
        return refuse(r, "what it adds to is of another kind");
    if (kind == PICKLE_DICT && (r->stack.count - from) % 2)
        return refuse(r, "the last key has no value");
    return collect(r, from, to);
}

static bool op_add_marked(Reader *r, int kind) {
    const int from = pop_mark(r);
    return from >= 0 && add_to(r, kind, from);
}

/* An item, or a key and its value. */
static bool op_add_last(Reader *r, int kind) {
    const int count = kind == PICKLE_DICT ? 2 : 1;
    return r->stack.count - floor_of(r) < count ? missing(r) != NULL : add_to(r, kind, r->stack.count - count);
}

static bool op_mark(Reader *r, int unused) {
    (void)unused;
    if (r->marks.count == DEEPEST)
        return refuse(r, "values are nested a million deep: that is no file of weights");
    VEC_PUSH(r->arena, &r->marks, r->stack.count);
    return true;
}

static bool op_pop(Reader *r, int unused) {
    (void)unused;
    return pop(r) != NULL;
}

static bool op_pop_mark(Reader *r, int unused) {
    (void)unused;
    const int from = pop_mark(r);
    r->stack.count = from < 0 ? r->stack.count : from;
    return from >= 0;
}

static bool op_dup(Reader *r, int unused) {
    (void)unused;
    return push(r, top(r));
}

static bool op_stop(Reader *r, int unused) {
    (void)unused;
    r->result = pop(r);
    if (r->result && (r->stack.count || r->marks.count))
        return refuse(r, "more than one value is left on the stack");
    return r->result != NULL;
}

/* ---- numbers and texts ---- */

static bool push_integer(Reader *r, PickleKind kind, int64_t integer) {
    PickleValue *value = new_value(r, kind);
    if (value)
        value->integer = integer;
    return push(r, value);
}

static bool op_new(Reader *r, int kind) {
    return push(r, new_value(r, (PickleKind)kind));
}

static bool op_bool(Reader *r, int argument) {
    return push_integer(r, PICKLE_BOOL, argument);
}

/* Of 4 bytes with a sign, of fewer without. */
static bool op_int(Reader *r, int width) {
    uint64_t number;
    return take_number(r, width, &number) &&
           push_integer(r, PICKLE_INT, width == 4 ? (int32_t)number : (int64_t)number);
}

static bool op_float(Reader *r, int width) {
    return take(r, (uint64_t)width) && push(r, new_value(r, PICKLE_NUMBER));
}

/* Two's complement, the lowest byte first. */
static bool push_long(Reader *r, uint64_t size) {
    if (size > LONGEST_INT)
        return refuse(r, "it is an integer of more than 255 bytes: that is in no file of weights");
    const uint8_t *from = take(r, size);
    if (!from || size > 8)
        return from && push(r, new_value(r, PICKLE_NUMBER));
    uint64_t number = size && from[size - 1] & 0x80 ? UINT64_MAX : 0;
    for (uint64_t i = size; i-- > 0;)
        number = number << 8 | from[i];
    return push_integer(r, PICKLE_INT, (int64_t)number);
}

static bool op_long(Reader *r, int width) {
    uint64_t size;
    return take_number(r, width, &size) && push_long(r, size);
}

/* Bytes behind their count, which has `width` bytes. */
static bool push_bytes(Reader *r, PickleKind kind, int width) {
    uint64_t size;
    const uint8_t *from = take_number(r, width, &size) ? take(r, size) : NULL;
    PickleValue *value = from ? new_value(r, kind) : NULL;
    if (value) {
        value->bytes = (const char *)from;
        value->size = (size_t)size;
    }
    return push(r, value);
}

static bool op_text(Reader *r, int width) {
    return push_bytes(r, PICKLE_TEXT, width);
}

static bool op_bytes(Reader *r, int width) {
    return push_bytes(r, PICKLE_BYTES, width);
}

/* ---- the memo ---- */

static bool remember(Reader *r, uint64_t index) {
    PickleValue *value = top(r);
    if (!value)
        return false;
    if (index >= MOST_VALUES)
        return refuse(r, "the number of what is remembered is beyond 4 million: that is no file of weights");
    while ((uint64_t)r->memo.count <= index)
        VEC_PUSH(r->arena, &r->memo, NULL);
    r->memo.at[index] = value;
    return true;
}

static bool recall(Reader *r, uint64_t index) {
    if (index >= (uint64_t)r->memo.count || !r->memo.at[index])
        return refuse(r, "it asks for what was not remembered");
    return push(r, r->memo.at[index]);
}

static bool op_put(Reader *r, int width) {
    uint64_t index;
    return take_number(r, width, &index) && remember(r, index);
}

static bool op_memoize(Reader *r, int unused) {
    (void)unused;
    return remember(r, (uint64_t)r->memo.count);
}

static bool op_get(Reader *r, int width) {
    uint64_t index;
    return take_number(r, width, &index) && recall(r, index);
}

/* ---- names and calls ---- */

/* A name that is not in the list stays a name: its module and itself. */
static bool push_global(Reader *r, const PickleValue *module, const PickleValue *name) {
    if (!module || !name)
        return false;
    for (int i = 0; i < r->global_count; i++)
        if (pickle_is_text(module, r->globals[i].module) && pickle_is_text(name, r->globals[i].name))
            return push_integer(r, PICKLE_GLOBAL, i);
    PickleValue *value = new_value(r, PICKLE_TUPLE);
    if (!value || !add_item(r, value, module) || !add_item(r, value, name))
        return false;
    value->kind = PICKLE_OPAQUE;
    return push(r, value);
}

/* A text up to the end of the line. */
static const PickleValue *take_line(Reader *r) {
    const uint8_t *from = r->at;
    const uint8_t *stop = from < r->end ? memchr(from, '\n', (size_t)(r->end - from)) : NULL;
    if (!stop)
        refuse(r, "the pickle ends within what belongs to it");
    PickleValue *line = stop ? new_value(r, PICKLE_TEXT) : NULL;
    if (line) {
        line->bytes = (const char *)from;
        line->size = (size_t)(stop - from);
        r->at = stop + 1;
    }
    return line;
}

static bool op_global(Reader *r, int unused) {
    (void)unused;
    const PickleValue *module = take_line(r), *name = module ? take_line(r) : NULL;
    return push_global(r, module, name);
}

static bool op_stack_global(Reader *r, int unused) {
    (void)unused;
    const PickleValue *name = pop(r), *module = name ? pop(r) : NULL;
    if (module && (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT))
        return refuse(r, "module and name are no texts");
    return push_global(r, module, name);
}

/* What a class or function that is not in the list would make: nobody knows, and it is known by its name. */
static bool push_opaque(Reader *r, const PickleValue *of, bool outside) {
    PickleValue *value = new_value(r, PICKLE_OPAQUE);
    if (value) {
        value->first = of->first;
        value->size = of->size;
        value->outside = outside;
    }
    return push(r, value);
}

static bool op_reduce(Reader *r, int unused) {
    (void)unused;
    const PickleValue *arguments = pop(r), *called = arguments ? pop(r) : NULL;
    if (!called)
        return false;
    if ((called->kind != PICKLE_GLOBAL && called->kind != PICKLE_OPAQUE) || arguments->kind != PICKLE_TUPLE)
        return refuse(r, "what it calls is no name with a tuple of arguments");
    if (called->kind == PICKLE_OPAQUE)
        return push_opaque(r, called, called->outside || arguments->outside);
    const PickleUse use = r->globals[called->integer].use;
    if (use == PICKLE_NAMED)
        return refuse(r, "it calls what is only to be named");
    if (use == PICKLE_MAPS && arguments->size)
        return refuse(r, "an OrderedDict begins with arguments; Python's begin empty");
    PickleValue *value = new_value(r, use == PICKLE_MAPS ? PICKLE_DICT : PICKLE_CALL);
    if (value && use == PICKLE_CALLED) {
        value->integer = called->integer;
        value->first = arguments->first; /* a tuple does not change any more */
        value->size = arguments->size;
        value->outside = arguments->outside;
    }
    return push(r, value);
}

/* A class with arguments, and more that have names. */
static bool op_new_object(Reader *r, int count) {
    bool outside = false;
    for (int i = 0; i < count; i++) {
        const PickleValue *arguments = pop(r);
        if (!arguments)
            return false;
        outside |= arguments->outside;
    }
    const PickleValue *class = pop(r);
    if (class && class->kind != PICKLE_OPAQUE)
        return refuse(r, "no weights that torch.save writes need an object made so");
    return class && push_opaque(r, class, outside || class->outside);
}

/* Attributes of a dict, as the versions of its modules that a state dict has, are no weights; those of an object are not known. */
static bool op_build(Reader *r, int unused) {
    (void)unused;
    const PickleValue *state = pop(r);
    PickleValue *object = state ? top(r) : NULL;
    if (object && object->kind == PICKLE_OPAQUE)
        return add_item(r, object, state);
    if (object && object->kind != PICKLE_DICT)
        return refuse(r, "it gives attributes to what has none among weights");
    return object != NULL;
}

static bool op_persistent(Reader *r, int unused) {
    (void)unused;
    const PickleValue *id = pop(r);
    PickleValue *value = id ? new_value(r, PICKLE_OUTSIDE) : NULL;
    if (value)
        value->outside = true;
    return value && add_item(r, value, id) && push(r, value);
}

/* ---- the whole ---- */

static bool op_protocol(Reader *r, int width) {
    uint64_t protocol;
    if (!take_number(r, width, &protocol))
        return false;
    return protocol <= 5 || refuse(r, "protocols go to 5");
}

/* Opcodes are read one by one whatever frames they are in. */
static bool op_frame(Reader *r, int width) {
    uint64_t size;
    if (!take_number(r, width, &size))
        return false;
    return size <= (size_t)(r->end - r->at) || refuse(r, "the frame is longer than the pickle");
}

static const OpcodeRow opcodes[256] = {
    ['('] = {"MARK", op_mark, 0},
    [')'] = {"EMPTY_TUPLE", op_new, PICKLE_TUPLE},
    ['.'] = {"STOP", op_stop, 0},
    ['0'] = {"POP", op_pop, 0},
    ['1'] = {"POP_MARK", op_pop_mark, 0},
    ['2'] = {"DUP", op_dup, 0},
    ['B'] = {"BINBYTES", op_bytes, 4},
    ['C'] = {"SHORT_BINBYTES", op_bytes, 1},
    ['F'] = {"FLOAT", NULL, 0},
    ['G'] = {"BINFLOAT", op_float, 8},
    ['I'] = {"INT", NULL, 0},
    ['J'] = {"BININT", op_int, 4},
    ['K'] = {"BININT1", op_int, 1},
    ['L'] = {"LONG", NULL, 0},
    ['M'] = {"BININT2", op_int, 2},
    ['N'] = {"NONE", op_new, PICKLE_NONE},
    ['P'] = {"PERSID", NULL, 0},
    ['Q'] = {"BINPERSID", op_persistent, 0},
    ['R'] = {"REDUCE", op_reduce, 0},
    ['S'] = {"STRING", NULL, 0},
    ['T'] = {"BINSTRING", op_text, 4},
    ['U'] = {"SHORT_BINSTRING", op_text, 1},
    ['V'] = {"UNICODE", NULL, 0},
    ['X'] = {"BINUNICODE", op_text, 4},
    [']'] = {"EMPTY_LIST", op_new, PICKLE_LIST},
    ['a'] = {"APPEND", op_add_last, PICKLE_LIST},
    ['b'] = {"BUILD", op_build, 0},
    ['c'] = {"GLOBAL", op_global, 0},
    ['d'] = {"DICT", op_of_marked, PICKLE_DICT},
    ['e'] = {"APPENDS", op_add_marked, PICKLE_LIST},
    ['g'] = {"GET", NULL, 0},
    ['h'] = {"BINGET", op_get, 1},
    ['i'] = {"INST", NULL, 0},
    ['j'] = {"LONG_BINGET", op_get, 4},
    ['l'] = {"LIST", op_of_marked, PICKLE_LIST},
    ['o'] = {"OBJ", NULL, 0},
    ['p'] = {"PUT", NULL, 0},
    ['q'] = {"BINPUT", op_put, 1},
    ['r'] = {"LONG_BINPUT", op_put, 4},
    ['s'] = {"SETITEM", op_add_last, PICKLE_DICT},
    ['t'] = {"TUPLE", op_of_marked, PICKLE_TUPLE},
    ['u'] = {"SETITEMS", op_add_marked, PICKLE_DICT},
    ['}'] = {"EMPTY_DICT", op_new, PICKLE_DICT},
    [0x80] = {"PROTO", op_protocol, 1},
    [0x81] = {"NEWOBJ", op_new_object, 1},
    [0x82] = {"EXT1", NULL, 0},
    [0x83] = {"EXT2", NULL, 0},
    [0x84] = {"EXT4", NULL, 0},
    [0x85] = {"TUPLE1", op_tuple, 1},
    [0x86] = {"TUPLE2", op_tuple, 2},
    [0x87] = {"TUPLE3", op_tuple, 3},
    [0x88] = {"NEWTRUE", op_bool, true},
    [0x89] = {"NEWFALSE", op_bool, false},
    [0x8a] = {"LONG1", op_long, 1},
    [0x8b] = {"LONG4", op_long, 4},
    [0x8c] = {"SHORT_BINUNICODE", op_text, 1},
    [0x8d] = {"BINUNICODE8", op_text, 8},
    [0x8e] = {"BINBYTES8", op_bytes, 8},
    [0x8f] = {"EMPTY_SET", op_new, PICKLE_SET},
    [0x90] = {"ADDITEMS", op_add_marked, PICKLE_SET},
    [0x91] = {"FROZENSET", op_of_marked, PICKLE_SET},
    [0x92] = {"NEWOBJ_EX", op_new_object, 2},
    [0x93] = {"STACK_GLOBAL", op_stack_global, 0},
    [0x94] = {"MEMOIZE", op_memoize, 0},
    [0x95] = {"FRAME", op_frame, 8},
    [0x96] = {"BYTEARRAY8", op_bytes, 8},
    [0x97] = {"NEXT_BUFFER", NULL, 0},
    [0x98] = {"READONLY_BUFFER", NULL, 0},
};

static bool step(Reader *r) {
    const OpcodeRow *opcode = &opcodes[*r->at];
    r->offset = (size_t)(r->at - r->bytes);
    if (!opcode->name) {
        mtc_fail(r->fault, MTC_BAD_DATA, "%s: at byte %zu: 0x%02x is no opcode of a pickle", r->path, r->offset,
                 *r->at);
        return false;
    }
    r->at++;
    return opcode->run ? opcode->run(r, opcode->argument)
                       : refuse(r, "no weights that torch.save writes need this opcode");
}

static int run(Reader *r) {
    while (!r->result) {
        if (r->at == r->end)
            return mtc_fail(r->fault, MTC_BAD_DATA, "%s: the pickle ends without STOP, after %zu bytes", r->path,
                            (size_t)(r->end - r->bytes));
        if (!step(r))
            return r->fault->code;
    }
    return 0;
}

int pickle_read(MtcFault *fault, Arena *arena, const char *path, const uint8_t *bytes, size_t size,
                const PickleGlobal *globals, int count, const PickleValue **value) {
    Reader r = {.fault = fault,
                .arena = arena,
                .path = path,
                .bytes = bytes,
                .at = bytes,
                .end = bytes + size,
                .globals = globals,
                .global_count = count};
    if (size > PICKLE_MOST_BYTES)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: has %s: what describes weights has %s at most", path,
                        mtc_bytes((double)size), mtc_bytes(PICKLE_MOST_BYTES));
    int code = run(&r);
    *value = r.result;
    return code;
}

/* ---- asking ---- */

/* A line of what a file says: a part of a name. */
static const char *shown(Arena *arena, const PickleValue *text) {
    const size_t most = 100;
    return mtc_harmless(arena_strndup(arena, text->bytes, text->size < most ? text->size : most));
}

const char *pickle_kind(Arena *arena, const PickleValue *value) {
    static const char *const kinds[] = {
        [PICKLE_NONE] = "None",        [PICKLE_BOOL] = "a bool",   [PICKLE_INT] = "an int",
        [PICKLE_NUMBER] = "a number",  [PICKLE_TEXT] = "a str",    [PICKLE_BYTES] = "bytes",
        [PICKLE_TUPLE] = "a tuple",    [PICKLE_LIST] = "a list",   [PICKLE_SET] = "a set",
        [PICKLE_DICT] = "a dict",      [PICKLE_GLOBAL] = "a type", [PICKLE_CALL] = "a tensor",
        [PICKLE_OUTSIDE] = "a storage"};
    if (value->kind != PICKLE_OPAQUE)
        return kinds[value->kind];
    const char *module = shown(arena, pickle_item(value, 0));
    return arena_printf(arena, "%s.%s", module, shown(arena, pickle_item(value, 1)));
}

const PickleValue *pickle_item(const PickleValue *value, size_t index) {
    const PickleItem *item = value->first;
    while (item && index-- > 0)
        item = item->next;
    return item ? item->value : NULL;
}

bool pickle_is_text(const PickleValue *value, const char *text) {
    return value && value->kind == PICKLE_TEXT && value->size == strlen(text) &&
           memcmp(value->bytes, text, value->size) == 0;
}
