#include "base/cache.h"

#include "base/files.h"
#include "base/parallel.h"

#include <stdlib.h>
#include <string.h>

/* ---- digests ---- */

static const size_t DIGEST_BLOCK = 1 << 20;

static uint64_t stir(uint64_t state, uint64_t word) {
    state = (state ^ word) * 0xD6E8FEB86659FD93u;
    return state << 29 | state >> 35;
}

static uint64_t finish(uint64_t state) {
    state = (state ^ state >> 32) * 0x9E3779B97F4A7C15u;
    state = (state ^ state >> 29) * 0xD6E8FEB86659FD93u;
    return state ^ state >> 32;
}

/* Four lanes take eight bytes each in turn; they do not wait for each other. */
static MtcDigest digest_block(const char *bytes, size_t size) {
    uint64_t lane[4] = {0x243F6A8885A308D3u, 0x13198A2E03707344u, 0xA4093822299F31D0u, 0x082EFA98EC4E6C89u}, word[4];
    size_t left = size;
    for (; left >= 32; bytes += 32, left -= 32) {
        memcpy(word, bytes, 32);
        for (int i = 0; i < 4; i++)
            lane[i] = stir(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    memcpy(word, bytes, left);
    for (int i = 0; i < 4; i++)
        lane[i] = stir(lane[i], word[i]);
    MtcDigest digest;
    digest.at[0] = finish(stir(stir(stir(stir(size, lane[0]), lane[1]), lane[2]), lane[3]));
    digest.at[1] = finish(stir(stir(stir(stir(~size, lane[3]), lane[1]), lane[0]), lane[2]));
    return digest;
}

typedef struct DigestJob {
    const char *bytes;
    size_t size;
    MtcDigest *block;
} DigestJob;

static void digest_task(void *context, int64_t task) {
    const DigestJob *job = (const DigestJob *)context;
    size_t begin = (size_t)task * DIGEST_BLOCK, left = job->size - begin;
    job->block[task] = digest_block(job->bytes + begin, left < DIGEST_BLOCK ? left : DIGEST_BLOCK);
}

MtcDigest mtc_digest(const void *bytes, size_t size) {
    size_t blocks = size / DIGEST_BLOCK + 1;
    DigestJob job = {(const char *)bytes, size, (MtcDigest *)mtc_memory(NULL, blocks * sizeof(MtcDigest))};
    mtc_parallel((int64_t)blocks, digest_task, &job);
    MtcDigest digest = digest_block((const char *)job.block, blocks * sizeof *job.block);
    free(job.block);
    return digest;
}

/* ---- places ---- */

/* In the user's cache, what has one name is told apart by a digest of its folder. */
char *mtc_cache_path(const char *kept, int place) {
    const char *slash = strrchr(kept, '/'), *name = slash ? slash + 1 : kept;
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    MtcText path = {NULL, 0, 0};
    if (place == 0) {
        mtc_text_add(&path, "%.*s.%s.mtc-cache", (int)(name - kept), kept, name);
        return path.at;
    }
    char *whole = realpath(kept, NULL);
    if (whole && cache && *cache)
        mtc_text_add(&path, "%s/mtc/", cache);
    else if (whole && home && *home)
        mtc_text_add(&path, "%s/.cache/mtc/", home);
    if (path.at)
        mtc_text_add(&path, "%s.%016llx.mtc-cache", name, (unsigned long long)mtc_digest(whole, strlen(whole)).at[0]);
    free(whole);
    return path.at;
}

static bool write_whole(const char *path, const void *header, size_t header_size, const void *rest, size_t rest_size) {
    MtcFault unused;
    MtcOutput *output;
    mtc_output_clean(path);
    if (mtc_output_open_own(&unused, path, NULL, &output))
        return false;
    if (mtc_output_write(&unused, output, header, header_size) || mtc_output_write(&unused, output, rest, rest_size)) {
        mtc_output_discard(output);
        return false;
    }
    return mtc_output_commit(&unused, output) == 0;
}

void mtc_cache_keep(const char *kept, const void *header, size_t header_size, const void *rest, size_t rest_size) {
    bool written = false;
    for (int place = 0; place < MTC_CACHE_PLACES && !written; place++) {
        char *path = mtc_cache_path(kept, place);
        if (path && place == 1)
            mtc_make_folders(path);
        written = path && write_whole(path, header, header_size, rest, rest_size);
        free(path);
    }
}
