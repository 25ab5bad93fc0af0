/* A libnccl for processes without GPUs: what one sends lies in a file of $STUB until the other one has it. $STUB_FAULT: the call of
 * ncclGroupEnd that fails. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Id {
    char bytes[128];
} Id;

typedef struct Move {
    const void *from;
    void *to;
    size_t count;
    int peer;
} Move;

int ncclGetUniqueId(Id *id);
int ncclCommInitRank(void **comm, int count, Id id, int rank);
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream);
int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclCommGetAsyncError(void *comm, int *state);
int ncclCommAbort(void *comm);
int ncclCommDestroy(void *comm);
const char *ncclGetErrorString(int error);

static Move moves[8];
static int own, pending, groups, sent[64], received[64];

int ncclGetUniqueId(Id *id) {
    snprintf(id->bytes, sizeof id->bytes, "stub");
    return 0;
}

int ncclCommInitRank(void **comm, int count, Id id, int rank) {
    own = rank;
    *comm = &own;
    return count > 64 || strcmp(id.bytes, "stub") ? 5 : 0;
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream) {
    moves[pending++] = (Move){from, NULL, count, peer};
    return type != 1 || comm != &own || stream;
}

int ncclRecv(void *to, size_t count, int type, int peer, void *comm, void *stream) {
    moves[pending++] = (Move){NULL, to, count, peer};
    return type != 1 || comm != &own || stream;
}

int ncclGroupStart(void) {
    pending = 0;
    return 0;
}

static void name_message(char *name, size_t size, int from, int to, int number) {
    snprintf(name, size, "%s/%d-%d-%d", getenv("STUB"), from, to, number);
}

static void put(const Move *move) {
    char name[256], part[272];
    name_message(name, sizeof name, own, move->peer, sent[move->peer]++);
    snprintf(part, sizeof part, "%s.part", name);
    FILE *file = fopen(part, "wb");
    if (!file || fwrite(move->from, 1, move->count, file) != move->count || fclose(file) || rename(part, name))
        abort();
}

static void get(const Move *move) {
    char name[256];
    name_message(name, sizeof name, move->peer, own, received[move->peer]++);
    for (int tries = 0; access(name, R_OK); tries++) {
        usleep(500);
        if (tries > 20000)
            exit(1);
    }
    FILE *file = fopen(name, "rb");
    if (!file || fread(move->to, 1, move->count, file) != move->count || fgetc(file) != EOF || fclose(file) ||
        remove(name))
        abort();
}

int ncclGroupEnd(void) {
    const char *fault = getenv("STUB_FAULT");
    if (fault && ++groups == atoi(fault))
        return 6;
    for (int k = 0; k < pending; k++)
        if (moves[k].from)
            put(&moves[k]);
    for (int k = 0; k < pending; k++)
        if (moves[k].to)
            get(&moves[k]);
    return 0;
}

int ncclCommGetAsyncError(void *comm, int *state) {
    *state = 0;
    return comm != &own;
}

int ncclCommAbort(void *comm) {
    fprintf(stderr, "aborted\n");
    return comm != &own;
}

int ncclCommDestroy(void *comm) {
    return comm != &own;
}

const char *ncclGetErrorString(int error) {
    return error == 6 ? "remote process exited or there was a network error" : "another error";
}
