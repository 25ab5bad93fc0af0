/* Reading pickles of Python as far as files of weights need. A pickle is a program for a machine with a stack, which may
 * name any function of Python and call it. Here nothing is looked up and nothing is called: what the pickle describes is
 * recorded as values, a call with its arguments among them. Of names that are not in the caller's list, and of what would be made by
 * calling them, no more is known than the name. */
#ifndef MTC_PICKLE_H
#define MTC_PICKLE_H

#include "runtime/base/common.h"
#include "support/arena.h"

/* What a pickle names and the caller knows. */
typedef enum PickleUse {
    PICKLE_NAMED,  /* it stands in other values; a call of it is a fault */
    PICKLE_CALLED, /* a call of it is a value: PICKLE_CALL */
    PICKLE_MAPS    /* a call of it, without arguments, is an empty dict */
} PickleUse;
typedef struct PickleGlobal {
    const char *module, *name;
    PickleUse use;
} PickleGlobal;

typedef enum PickleKind {
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT,
    PICKLE_NUMBER, /* with a fraction, or of more than 64 bits: its value is not kept */
    PICKLE_TEXT,   /* UTF-8 as it stands in the file: not checked */
    PICKLE_BYTES,
    PICKLE_TUPLE,
    PICKLE_LIST,
    PICKLE_SET,
    PICKLE_DICT,    /* items: key, value, key, value ... */
    PICKLE_GLOBAL,  /* `integer` is its place in the list */
    PICKLE_CALL,    /* of the global `integer`; items: the arguments */
    PICKLE_OUTSIDE, /* what lies outside of the pickle; its one item says which */
    PICKLE_OPAQUE   /* a name that is not in the list, or what it would make; items: module and name, texts */
} PickleKind;

typedef struct PickleValue PickleValue;
typedef struct PickleItem {
    const PickleValue *value;
    struct PickleItem *next;
} PickleItem;

/* Lists, sets and dicts may hold themselves, at any depth: who walks through values counts steps. */
struct PickleValue {
    PickleKind kind;
    bool
        outside; /* what lies outside of the pickle is, or was put, in it; of a part that changed later this is not known */
    uint32_t offset;   /* of the opcode that made it */
    int64_t integer;   /* BOOL, INT, GLOBAL, CALL */
    const char *bytes; /* TEXT, BYTES: within the pickle, not terminated */
    size_t size;       /* of bytes; of items, how many */
    PickleItem *first, *last;
};

/* The value of a pickle, in the arena; `bytes` must stay. It takes no more than a second and 700 MB, whatever the bytes say. A fault names
 * `path`, the byte and the opcode. */
enum { PICKLE_MOST_BYTES = 64 << 20 };
int pickle_read(MtcFault *fault, Arena *arena, const char *path, const uint8_t *bytes, size_t size,
                const PickleGlobal *globals, int count, const PickleValue **value);

const char *pickle_kind(Arena *arena,
                        const PickleValue *value); /* "a list"; of what is opaque its name, "argparse.Namespace" */
/* The item of a tuple or of a call, counted from 0. NULL: there is none. */
const PickleValue *pickle_item(const PickleValue *value, size_t index);
bool pickle_is_text(const PickleValue *value, const char *text);

#endif
