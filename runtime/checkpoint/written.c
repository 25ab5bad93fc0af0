#include "checkpoint/written.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

void mtc_written_free(MtcWritten *written) {
    free(written->path);
    free(written->metadata.at);
    memset(written, 0, sizeof *written);
}

void mtc_written_note(MtcWritten *written, const char *path, const MtcContent *content) {
    mtc_written_free(written);
    if (stat(path, &written->status) != 0)
        return;
    mtc_text_add(&written->metadata, "%s", content->metadata);
    written->writes = content->writes;
    written->path = strdup(path);
}

static bool is_content(const MtcWritten *written, const MtcContent *content) {
    return written->path && written->writes == content->writes && strcmp(written->metadata.at, content->metadata) == 0;
}

static bool still_lies_there(const MtcWritten *written) {
    const struct stat *before = &written->status;
    struct stat now;
    return stat(written->path, &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino &&
           now.st_size == before->st_size && now.st_mtim.tv_sec == before->st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before->st_mtim.tv_nsec;
}

/* A file that is replaced leaves its mode and owner to the new one. */
static bool replaces_its_like(const MtcWritten *written, const char *path) {
    const struct stat *file = &written->status;
    struct stat replaced;
    return stat(path, &replaced) != 0 || (replaced.st_mode == file->st_mode && replaced.st_uid == file->st_uid &&
                                          replaced.st_gid == file->st_gid && !mtc_is_read_only(path));
}

bool mtc_written_link(const MtcWritten *written, const char *path, const MtcContent *content) {
    MtcFault unlinked;
    return is_content(written, content) && still_lies_there(written) && replaces_its_like(written, path) &&
           mtc_output_link(&unlinked, written->path, path) == 0;
}
