#include "support/arena.h"

#include <stdio.h>
#include <stdlib.h>

#define BLOCK_SIZE (size_t)(64 * 1024)

typedef struct Block Block;
struct Block {
    Block *next;
    size_t used, size;
    max_align_t data[];
};

struct Arena {
    Block *blocks;
};

static void *checked(void *memory) {
    if (!memory) {
        fputs("mtc: out of memory\n", stderr);
        exit(71);
    }
    return memory;
}

Arena *arena_new(void) {
    return checked(calloc(1, sizeof(Arena)));
}

void arena_free(Arena *arena) {
    for (Block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

static Block *block_new(size_t size) {
    Block *block = checked(calloc(1, sizeof(Block) + size));
    block->size = size;
    return block;
}

void *arena_alloc(Arena *arena, size_t size) {
    const size_t align = sizeof(max_align_t);
    size = (size + align - 1) / align * align;
    Block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        block = block_new(size > BLOCK_SIZE ? size : BLOCK_SIZE);
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = (char *)block->data + block->used;
    block->used += size;
    return memory;
}

char *arena_strndup(Arena *arena, const char *text, size_t length) {
    char *copy = arena_alloc(arena, length + 1);
    memcpy(copy, text, length);
    return copy;
}

char *arena_strdup(Arena *arena, const char *text) {
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(Arena *arena, const char *format, va_list args) {
    va_list measure;
    va_copy(measure, args);
    int length = vsnprintf(NULL, 0, format, measure);
    va_end(measure);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

char *arena_printf(Arena *arena, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}

void *arena_grow(Arena *arena, void *items, int *capacity, size_t item_size) {
    int grown = *capacity ? *capacity * 2 : 8;
    void *copy = arena_alloc(arena, (size_t)grown * item_size);
    if (*capacity)
        memcpy(copy, items, (size_t)*capacity * item_size);
    *capacity = grown;
    return copy;
}
