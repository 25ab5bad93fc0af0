#include "plot/png.h"

/* ---- images ---- */

static size_t stride_of(const Image *image) {
    return 1 + 3 * (size_t)image->width;
}

Image image_new(Arena *arena, int width, int height) {
    Image image = {width, height, NULL};
    image.rows = arena_alloc(arena, stride_of(&image) * (size_t)height);
    return image;
}

uint8_t *image_pixel(const Image *image, int x, int y) {
    return image->rows + (size_t)y * stride_of(image) + 1 + 3 * (size_t)x;
}

/* ---- deflate (RFC 1951), with its fixed codes ---- */

enum { SHORTEST = 3, LONGEST = 258, END_OF_BLOCK = 256, FIRST_LENGTH = 257, LONGEST_CODE = 285, FARTHEST = 32768 };

typedef struct Bits {
    Text *out;
    unsigned pending;
    int count; /* of `pending`, below 8 */
} Bits;

static void put_bits(Bits *bits, unsigned value, int count) {
    for (int i = 0; i < count; i++) {
        bits->pending |= (value >> i & 1) << bits->count;
        if (++bits->count == 8) {
            text_putc(bits->out, (char)bits->pending);
            bits->pending = 0;
            bits->count = 0;
        }
    }
}

/* A code goes with its highest bit first. */
static void put_code(Bits *bits, unsigned code, int count) {
    for (int i = count - 1; i >= 0; i--)
        put_bits(bits, code >> i & 1, 1);
}

static void put_symbol(Bits *bits, unsigned symbol) {
    if (symbol < 144)
        put_code(bits, 0x30 + symbol, 8);
    else if (symbol < END_OF_BLOCK)
        put_code(bits, 0x190 + symbol - 144, 9);
    else if (symbol < 280)
        put_code(bits, symbol - END_OF_BLOCK, 7);
    else
        put_code(bits, 0xc0 + symbol - 280, 8);
}

/* Of lengths the first three bits, of distances the first two select the code; the others follow it. */
static int extra_bits(unsigned amount, unsigned codes) {
    int extra = 0;
    while (amount >> extra >= 2 * codes)
        extra++;
    return extra;
}

static void put_copy(Bits *bits, size_t length, size_t distance) {
    unsigned amount = (unsigned)(length - SHORTEST), back = (unsigned)(distance - 1);
    int extra = extra_bits(amount, 4);
    put_symbol(bits, length == LONGEST ? LONGEST_CODE : FIRST_LENGTH + 4 * (unsigned)extra + (amount >> extra));
    put_bits(bits, amount, length == LONGEST ? 0 : extra);
    extra = extra_bits(back, 2);
    put_code(bits, 2 * (unsigned)extra + (back >> extra), 5);
    put_bits(bits, back, extra);
}

/* How many bytes from `at` on are what stands `distance` before them. */
static size_t repeated(const uint8_t *bytes, size_t size, size_t at, size_t distance) {
    size_t length = 0;
    if (at < distance)
        return 0;
    while (length < LONGEST && at + length < size && bytes[at + length] == bytes[at + length - distance])
        length++;
    return length;
}

/* Only the pixel before and the row above are looked at: pictures of curves are paper for the most part. */
static void put_deflated(Bits *bits, const uint8_t *bytes, size_t size, size_t stride) {
    put_bits(bits, 1, 1); /* the last block */
    put_bits(bits, 1, 2); /* of fixed codes */
    for (size_t at = 0; at < size;) {
        size_t left = repeated(bytes, size, at, 3), above = stride <= FARTHEST ? repeated(bytes, size, at, stride) : 0;
        size_t length = left >= above ? left : above;
        if (length >= SHORTEST)
            put_copy(bits, length, left >= above ? 3 : stride);
        else
            put_symbol(bits, bytes[at]);
        at += length >= SHORTEST ? length : 1;
    }
    put_symbol(bits, END_OF_BLOCK);
    put_bits(bits, 0, (8 - bits->count) % 8);
}

/* ---- zlib and PNG ---- */

static void put_u32(Text *out, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8)
        text_putc(out, (char)(value >> shift & 0xff));
}

static uint32_t adler32(const uint8_t *bytes, size_t size) {
    uint32_t sum = 1, sums = 0;
    for (size_t i = 0; i < size; i++) {
        sum = (sum + bytes[i]) % 65521;
        sums = (sums + sum) % 65521;
    }
    return sums << 16 | sum;
}

static uint32_t crc32(const char *bytes, size_t size) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static void put_chunk(Text *out, const char name[5], const Text *data) {
    put_u32(out, (uint32_t)data->length);
    size_t start = out->length;
    text_append(out, name, 4);
    text_append(out, text_string(data), data->length);
    put_u32(out, crc32(out->at + start, out->length - start));
}

void image_png(const Image *image, Text *out) {
    const size_t size = stride_of(image) * (size_t)image->height;
    Text header = TEXT(out->arena), data = TEXT(out->arena), none = TEXT(out->arena);
    Bits bits = {.out = &data};
    put_u32(&header, (uint32_t)image->width);
    put_u32(&header, (uint32_t)image->height);
    text_append(&header, "\x08\x02\0\0\0", 5); /* 8 bits of red, green and blue */
    text_puts(&data, "\x78\x01");
    put_deflated(&bits, image->rows, size, stride_of(image));
    put_u32(&data, adler32(image->rows, size));
    text_puts(out, "\x89PNG\r\n\x1a\n");
    put_chunk(out, "IHDR", &header);
    put_chunk(out, "IDAT", &data);
    put_chunk(out, "IEND", &none);
}
