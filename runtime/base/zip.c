/* A zip archive: members, each after a header of its own; then a directory of them; then a record that says where the
 * directory is. Sizes of 4 GB and more stand in an extra field of 64-bit numbers ("zip64"). All numbers are
 * little-endian. What the directory says is checked against the file before it is used. */
#include "base/zip.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct Member {
    char *name;
    int method; /* 0: stored; 8: deflated */
    uint32_t crc;
    uint64_t packed, size, header; /* header: where the member's own is */
} Member;

struct MtcZip {
    char *path;
    uint8_t *owned;
    const uint8_t *bytes;
    size_t size;
    int count;
    bool unchecked; /* no member has a checksum: PyTorch leaves them 0 where it is told so */
    Member *member;
    const Member **named; /* in the order of their names; of one name, in that of the directory */
};

static uint64_t number(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

static int broken(MtcFault *fault, const MtcZip *zip, const char *what) {
    return mtc_fail(fault, MTC_BAD_DATA, "%s: is not a whole zip archive: %s", zip->path, what);
}

/* ---- the directory ---- */

enum { RECORD_BYTES = 22, ENTRY_BYTES = 46, HEADER_BYTES = 30, LOCATOR_BYTES = 20, RECORD64_BYTES = 56 };

/* The record that ends the archive, before a comment; NULL: there is none. */
static const uint8_t *find_record(const MtcZip *zip) {
    const size_t longest = 65535 + RECORD_BYTES;
    if (zip->size < RECORD_BYTES)
        return NULL;
    const uint8_t *at = zip->bytes + zip->size - RECORD_BYTES;
    const uint8_t *first = zip->size > longest ? zip->bytes + zip->size - longest : zip->bytes;
    while (memcmp(at, "PK\5\6", 4) != 0)
        if (at-- == first)
            return NULL;
    return at;
}

/* Where the directory is, and how many entries it has. */
static bool find_directory(const MtcZip *zip, const uint8_t *record, uint64_t *at, uint64_t *entries) {
    *entries = number(record + 10, 2);
    *at = number(record + 16, 4);
    if (*at != UINT32_MAX && *entries != UINT16_MAX)
        return true;
    if (record - zip->bytes < LOCATOR_BYTES || memcmp(record - LOCATOR_BYTES, "PK\6\7", 4) != 0)
        return *at != UINT32_MAX;
    uint64_t place = number(record - LOCATOR_BYTES + 8, 8);
    if (place > zip->size || zip->size - place < RECORD64_BYTES || memcmp(zip->bytes + place, "PK\6\6", 4) != 0)
        return false;
    *entries = number(zip->bytes + place + 32, 8);
    *at = number(zip->bytes + place + 48, 8);
    return true;
}

/* The numbers that did not fit into 32 bits, in their order. */
static bool read_wide(Member *member, const uint8_t *extra, size_t length) {
    uint64_t *const wide[] = {&member->size, &member->packed, &member->header};
    while (length >= 4) {
        size_t bytes = (size_t)number(extra + 2, 2);
        if (bytes > length - 4)
            return false;
        if (number(extra, 2) == 1) {
            for (int i = 0, used = 0; i < 3; i++)
                if (*wide[i] == UINT32_MAX) {
                    if (bytes < (size_t)used + 8)
                        return false;
                    *wide[i] = number(extra + 4 + used, 8);
                    used += 8;
                }
            return true;
        }
        extra += 4 + bytes;
        length -= 4 + bytes;
    }
    return true;
}

/* One entry of the directory, which *at passes. */
static bool read_entry(MtcZip *zip, uint64_t *at) {
    if (*at > zip->size || zip->size - *at < ENTRY_BYTES)
        return false;
    const uint8_t *entry = zip->bytes + *at;
    if (memcmp(entry, "PK\1\2", 4) != 0)
        return false;
    size_t name = (size_t)number(entry + 28, 2), extra = (size_t)number(entry + 30, 2);
    size_t length = ENTRY_BYTES + name + extra + (size_t)number(entry + 32, 2);
    if (length > zip->size - *at)
        return false;
    Member member = {NULL,
                     (int)number(entry + 10, 2),
                     (uint32_t)number(entry + 16, 4),
                     number(entry + 20, 4),
                     number(entry + 24, 4),
                     number(entry + 42, 4)};
    if (!read_wide(&member, entry + ENTRY_BYTES + name, extra))
        return false;
    member.name = (char *)mtc_memory(NULL, name + 1);
    memcpy(member.name, entry + ENTRY_BYTES, name);
    member.name[name] = 0;
    zip->member = (Member *)mtc_memory(zip->member, (size_t)(zip->count + 1) * sizeof *zip->member);
    zip->member[zip->count++] = member;
    *at += length;
    return true;
}

static int by_name(const void *a, const void *b) {
    const Member *x = *(const Member *const *)a, *y = *(const Member *const *)b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x > y) - (x < y);
}

static void sort_members(MtcZip *zip) {
    zip->named = (const Member **)mtc_memory(NULL, ((size_t)zip->count + 1) * sizeof *zip->named);
    for (int i = 0; i < zip->count; i++)
        zip->named[i] = &zip->member[i];
    qsort((void *)zip->named, (size_t)zip->count, sizeof *zip->named, by_name);
}

static int read_directory(MtcFault *fault, MtcZip *zip) {
    const uint8_t *record = find_record(zip);
    uint64_t at, entries;
    if (!record)
        return broken(fault, zip, "its directory is missing");
    if (!find_directory(zip, record, &at, &entries))
        return broken(fault, zip, "its directory is not where its end says");
    for (uint64_t i = 0; i < entries; i++)
        if (!read_entry(zip, &at))
            return broken(fault, zip, "its directory is damaged");
    zip->unchecked = true;
    for (int i = 0; i < zip->count; i++)
        zip->unchecked &= zip->member[i].crc == 0;
    sort_members(zip);
    return 0;
}

int mtc_zip_memory(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size, MtcZip **result) {
    MtcZip *zip = (MtcZip *)mtc_zeroed(sizeof *zip);
    zip->path = strdup(path);
    zip->bytes = bytes;
    zip->size = size;
    int code = read_directory(fault, zip);
    if (code)
        mtc_zip_close(zip);
    else
        *result = zip;
    return code;
}

int mtc_zip_open(MtcFault *fault, const char *path, MtcZip **zip) {
    uint8_t *bytes;
    size_t size;
    int code = mtc_read_file(fault, path, &bytes, &size);
    if (code)
        return code;
    code = mtc_zip_memory(fault, path, bytes, size, zip);
    if (code)
        free(bytes);
    else
        (*zip)->owned = bytes;
    return code;
}

void mtc_zip_close(MtcZip *zip) {
    for (int i = 0; i < zip->count; i++)
        free(zip->member[i].name);
    free(zip->member);
    free((void *)zip->named);
    free(zip->owned);
    free(zip->path);
    free(zip);
}

const char *mtc_zip_path(const MtcZip *zip) {
    return zip->path;
}

/* ---- members ---- */

static const Member *find_member(const MtcZip *zip, const char *name) {
    int from = 0, to = zip->count; /* the first that is not before the name is in [from, to] */
    while (from < to) {
        const int middle = from + (to - from) / 2;
        if (strcmp(zip->named[middle]->name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from < zip->count && strcmp(zip->named[from]->name, name) == 0 ? zip->named[from] : NULL;
}

bool mtc_zip_has(const MtcZip *zip, const char *name) {
    return find_member(zip, name) != NULL;
}

const char *mtc_zip_name(const MtcZip *zip, int member) {
    return member < zip->count ? zip->member[member].name : NULL;
}

bool mtc_zip_size(const MtcZip *zip, const char *name, size_t *size) {
    const Member *member = find_member(zip, name);
    *size = member ? (size_t)member->size : 0;
    return member != NULL;
}

static int no_member(MtcFault *fault, const MtcZip *zip, const char *name) {
    MtcText names = {NULL, 0, 0};
    for (int i = 0; i < zip->count && i < 20; i++)
        mtc_text_add(&names, "%s%s", i ? ", " : "", zip->member[i].name);
    mtc_fail(fault, MTC_BAD_DATA, "%s: has no array '%s'", zip->path, name);
    mtc_note(fault, "it holds %s", names.at ? names.at : "nothing");
    free(names.at);
    return fault->code;
}

/* CRC-32 of zip: the remainder of the bits, first bit first, by the polynomial 0xEDB88320. */
static uint32_t crc_of(const uint8_t *bytes, size_t size) {
    uint32_t table[256], crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xEDB88320u : table[i] >> 1;
    }
    for (size_t i = 0; i < size; i++)
        crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 0xFF];
    return ~crc;
}

/* zlib's stream, as zlib.h lays it out. */
typedef struct ZStream {
    const uint8_t *next_in;
    unsigned avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state, *zalloc, *zfree, *opaque;
    int data_type;
    unsigned long adler, reserved;
} ZStream;

enum { RAW_DEFLATE = -15, STREAM_END = 1 };

typedef struct Inflater {
    int (*init)(ZStream *stream, int window, const char *version, int size);
    int (*inflate)(ZStream *stream, int flush);
    int (*end)(ZStream *stream);
    const char *(*version)(void);
} Inflater;

static bool load_inflater(Inflater *z) {
    void *library = dlopen("libz.so.1", RTLD_NOW);
    if (!library)
        return false;
    *(void **)&z->init = dlsym(library, "inflateInit2_");
    *(void **)&z->inflate = dlsym(library, "inflate");
    *(void **)&z->end = dlsym(library, "inflateEnd");
    *(void **)&z->version = dlsym(library, "zlibVersion");
    return z->init && z->inflate && z->end && z->version;
}

/* Exactly `size` bytes come out of exactly `packed`. */
static bool inflate_all(const Inflater *z, const uint8_t *from, size_t packed, uint8_t *to, size_t size) {
    const size_t most = 1u << 30;
    ZStream stream;
    int status = 0;
    memset(&stream, 0, sizeof stream);
    if (z->init(&stream, RAW_DEFLATE, z->version(), (int)sizeof stream) != 0)
        return false;
    stream.next_in = from;
    stream.next_out = to;
    while (status == 0) {
        size_t in = packed - (size_t)(stream.next_in - from), out = size - (size_t)(stream.next_out - to);
        stream.avail_in = (unsigned)(in < most ? in : most);
        stream.avail_out = (unsigned)(out < most ? out : most);
        status = z->inflate(&stream, 0);
    }
    bool whole = status == STREAM_END && stream.next_out == to + size;
    z->end(&stream);
    return whole;
}

static int inflate_member(MtcFault *fault, const MtcZip *zip, const Member *member, const uint8_t *from, uint8_t *to) {
    Inflater z;
    if (!load_inflater(&z)) {
        mtc_fail(fault, MTC_UNAVAILABLE, "%s: is compressed, and libz.so.1 is not installed", zip->path);
        mtc_note(fault, "install zlib (Debian: apt-get install zlib1g), or write the file without compression");
        return fault->code;
    }
    if (!inflate_all(&z, from, (size_t)member->packed, to, (size_t)member->size))
        return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' cannot be unpacked: it is damaged", zip->path, member->name);
    return 0;
}

/* Where the member's bytes are. Its own header repeats the name, and may have other extra fields. */
static int member_bytes(MtcFault *fault, const MtcZip *zip, const Member *member, const uint8_t **bytes) {
    const uint64_t deflate = 1032; /* the most bytes that one compressed byte can stand for */
    bool inside = member->header <= zip->size && zip->size - member->header >= HEADER_BYTES;
    const uint8_t *header = inside ? zip->bytes + member->header : NULL;
    if (!inside || memcmp(header, "PK\3\4", 4) != 0)
        return broken(fault, zip, "a member is not where the directory says");
    uint64_t begin = member->header + HEADER_BYTES + number(header + 26, 2) + number(header + 28, 2);
    if (begin > zip->size || member->packed > zip->size - begin)
        return broken(fault, zip, "a member is cut off");
    if (number(header + 6, 2) & 1)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is encrypted", zip->path, member->name);
    if (member->method != 0 && member->method != 8)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is compressed in a way that is not deflate (method %d)",
                        zip->path, member->name, member->method);
    if (member->method == 0 ? member->size != member->packed : member->size / deflate > member->packed)
        return broken(fault, zip, "a member's sizes contradict each other");
    *bytes = zip->bytes + begin;
    return 0;
}

int mtc_zip_read(MtcFault *fault, const MtcZip *zip, const char *name, uint8_t **bytes, size_t *size) {
    const Member *member = find_member(zip, name);
    const uint8_t *from = NULL;
    int code = member ? member_bytes(fault, zip, member, &from) : no_member(fault, zip, name);
    if (code)
        return code;
    *size = (size_t)member->size;
    *bytes = (uint8_t *)malloc(*size + 1);
    if (!*bytes)
        return mtc_no_memory(fault, *size, zip->path);
    if (member->method == 0)
        memcpy(*bytes, from, *size);
    else
        code = inflate_member(fault, zip, member, from, *bytes);
    if (!code && !zip->unchecked && crc_of(*bytes, *size) != member->crc)
        code = mtc_fail(fault, MTC_BAD_DATA, "%s: '%s' is damaged: its checksum is another one", zip->path, name);
    if (code)
        free(*bytes);
    return code;
}
