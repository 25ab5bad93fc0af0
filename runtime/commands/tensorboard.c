/* A file of TFRecords, each a length, that length's checksum, the data and theirs; the data are a protocol buffer:
 *
 *     Event   { 1: double wall_time; 2: int64 step; 3: string file_version; 5: Summary summary }
 *     Summary { 1: repeated Value value }
 *     Value   { 1: string tag; 2: float simple_value } */
#include "commands/tensorboard.h"

#include "base/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct EventBytes {
    uint8_t *at;
    size_t length, capacity;
} EventBytes;

struct MtcEvents {
    const char *program;
    char *path;
    FILE *file;
    int error; /* the first errno of writing; 0: none */
    int64_t step;
    EventBytes summary, event, value;
};

/* ---- protocol buffers ---- */

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 }; /* kinds of fields on the wire */

static void event_put(EventBytes *bytes, const void *data, size_t size) {
    if (bytes->length + size > bytes->capacity) {
        bytes->capacity = 2 * (bytes->length + size);
        bytes->at = (uint8_t *)mtc_memory(bytes->at, bytes->capacity);
    }
    memcpy(bytes->at + bytes->length, data, size);
    bytes->length += size;
}

static void put_little_endian(EventBytes *bytes, uint64_t value, int size) {
    for (int i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)(value >> 8 * i);
        event_put(bytes, &byte, 1);
    }
}

static void put_varint(EventBytes *bytes, uint64_t value) {
    for (; value >= 0x80; value >>= 7)
        put_little_endian(bytes, (value & 0x7F) | 0x80, 1);
    put_little_endian(bytes, value, 1);
}

static void put_key(EventBytes *bytes, int field, int kind) {
    put_varint(bytes, (uint64_t)(field << 3 | kind));
}

static void put_double(EventBytes *bytes, int field, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(bytes, field, WIRE_FIXED64);
    put_little_endian(bytes, bits, 8);
}

static void put_float(EventBytes *bytes, int field, float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(bytes, field, WIRE_FIXED32);
    put_little_endian(bytes, bits, 4);
}

static void put_bytes(EventBytes *bytes, int field, const void *data, size_t size) {
    put_key(bytes, field, WIRE_BYTES);
    put_varint(bytes, size);
    event_put(bytes, data, size);
}

/* ---- records ---- */

/* CRC-32C (Castagnoli), bit by bit: an event has a hundred bytes. */
static uint32_t crc32c(const uint8_t *bytes, size_t size) {
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

/* Masked, as TFRecord has it, so that a checksum of data that hold checksums is no problem. */
static uint32_t masked_crc(const uint8_t *bytes, size_t size) {
    uint32_t crc = crc32c(bytes, size);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

static void write_record(MtcEvents *events, const EventBytes *data) {
    EventBytes record = {NULL, 0, 0};
    put_little_endian(&record, data->length, 8);
    put_little_endian(&record, masked_crc(record.at, 8), 4);
    event_put(&record, data->at, data->length);
    put_little_endian(&record, masked_crc(data->at, data->length), 4);
    bool written = fwrite(record.at, 1, record.length, events->file) == record.length && fflush(events->file) == 0;
    if (!written && !events->error) {
        events->error = errno;
        fprintf(stderr, "%s: warning: the events are incomplete from here on: %s: cannot write: %s\n", events->program,
                events->path, strerror(events->error));
    }
    free(record.at);
}

/* ---- events ---- */

static double wall_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void begin_event(MtcEvents *events) {
    events->event.length = 0;
    put_double(&events->event, 1, wall_time());
}

void mtc_events_begin(MtcEvents *events, int64_t step) {
    if (!events)
        return;
    events->step = step;
    events->summary.length = 0;
}

void mtc_events_add(MtcEvents *events, const char *group, const char *name, double value) {
    char tag[256];
    if (!events)
        return;
    snprintf(tag, sizeof tag, "%s/%s", group, name);
    events->value.length = 0;
    put_bytes(&events->value, 1, tag, strlen(tag));
    put_float(&events->value, 2, (float)value);
    put_bytes(&events->summary, 1, events->value.at, events->value.length);
}

void mtc_events_end(MtcEvents *events) {
    if (!events)
        return;
    begin_event(events);
    put_key(&events->event, 2, WIRE_VARINT);
    put_varint(&events->event, (uint64_t)events->step);
    put_bytes(&events->event, 5, events->summary.at, events->summary.length);
    write_record(events, &events->event);
}

/* ---- the file ---- */

static char *event_path(const char *folder) {
    char host[256] = "";
    MtcText path = {NULL, 0, 0};
    gethostname(host, sizeof host - 1);
    size_t length = strlen(folder);
    const char *slash = length == 0 || folder[length - 1] == '/' ? "" : "/";
    mtc_text_add(&path, "%s%sevents.out.tfevents.%lld.%s.%ld", folder, slash, (long long)time(NULL),
                 *host ? host : "localhost", (long)getpid());
    return path.at;
}

static void free_events(MtcEvents *events) {
    free(events->path);
    free(events->summary.at);
    free(events->event.at);
    free(events->value.at);
    free(events);
}

int mtc_events_open(MtcFault *fault, const char *program, const char *folder, MtcEvents **result) {
    static const char version[] = "brain.Event:2";
    *result = NULL;
    MtcEvents *events = (MtcEvents *)mtc_zeroed(sizeof *events);
    events->program = program;
    events->path = event_path(folder);
    mtc_make_folders(events->path);
    events->file = fopen(events->path, "wb");
    if (!events->file) {
        mtc_fail(fault, MTC_CANT_CREATE, "%s: cannot write: %s", events->path, strerror(errno));
        free_events(events);
        return fault->code;
    }
    begin_event(events);
    put_bytes(&events->event, 3, version, sizeof version - 1);
    write_record(events, &events->event);
    *result = events;
    return 0;
}

int mtc_events_close(MtcFault *fault, MtcEvents *events) {
    if (!events)
        return 0;
    if (fclose(events->file) != 0 && !events->error)
        events->error = errno;
    int code =
        events->error ? mtc_fail(fault, MTC_IO, "%s: cannot write: %s", events->path, strerror(events->error)) : 0;
    free_events(events);
    return code;
}
