/* Region allocation: a compilation allocates from one arena and frees it whole.
 *
 * Nothing here returns NULL: when memory runs out the process ends with a message. */
#ifndef MTC_ARENA_H
#define MTC_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <string.h>

typedef struct Arena Arena;

Arena *arena_new(void);
void arena_free(Arena *arena);

/* Zeroed memory, aligned for any type, valid until arena_free. */
void *arena_alloc(Arena *arena, size_t size);
char *arena_strdup(Arena *arena, const char *text);
char *arena_strndup(Arena *arena, const char *text, size_t length);
char *arena_printf(Arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *arena, const char *format, va_list args);

#define NEW(arena, Type) ((Type *)arena_alloc(arena, sizeof(Type)))
#define NEW_ARRAY(arena, Type, count) ((Type *)arena_alloc(arena, (size_t)(count) * sizeof(Type)))

/* A growable array whose storage lives in an arena:  VEC(Node *) nodes = {0}; VEC_PUSH(arena, &nodes, n); */
#define VEC(Type)                                                                                                      \
    struct {                                                                                                           \
        Type *at;                                                                                                      \
        int count, capacity;                                                                                           \
    }

#define VEC_PUSH(arena, vec, item)                                                                                     \
    do {                                                                                                               \
        if ((vec)->count == (vec)->capacity)                                                                           \
            (vec)->at = arena_grow(arena, (vec)->at, &(vec)->capacity, sizeof *(vec)->at);                             \
        (vec)->at[(vec)->count++] = (item);                                                                            \
    } while (0)

/* A copy of `items` with doubled capacity; `*capacity` is updated. */
void *arena_grow(Arena *arena, void *items, int *capacity, size_t item_size);

#endif
