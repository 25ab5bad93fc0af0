/* Files of torch.save: a zip archive of a pickle, which describes tensors, and of their storages, the bytes. Tensors may share
 * a storage, and are seen in it through an offset and strides. */
#ifndef MTC_TORCH_H
#define MTC_TORCH_H

#include "runtime/base/safetensors.h"
#include "runtime/base/zip.h"
#include "support/arena.h"

typedef struct TorchTensor {
    const char *name;
    const char *dtype; /* as safetensors has it: "F32" */
    int rank;
    int64_t dim[8], stride[8], from; /* in elements; from: of the first one in its storage */
    size_t element, size;            /* bytes of one, and of all when they lie one behind the other */
    const char *member;              /* of the archive: its storage */
    int64_t stored;                  /* elements of the storage */
} TorchTensor;

enum { TORCH_MOST_OTHERS = 12 };

typedef struct TorchFile {
    const char *path;
    Arena *arena;
    MtcMapped file;
    MtcZip *zip;
    const char *folder; /* in the archive, with its slash */
    size_t names;       /* bytes of names that there may still be: each stands in the pickle once */
    const char *key;    /* which member of a checkpoint the tensors are of; NULL: they are all that the file holds */
    VEC(TorchTensor) tensors;
    VEC(const char *)
    others; /* what stands beside them and is no tensor: "epoch (an int)"; of many, one more than TORCH_MOST_OTHERS */
} TorchFile;

/* Opens the file and finds the tensors: those of `key`, "model" or "state.model"; NULL: of the file itself or of the one member that holds
 * some. Each lies within its storage, and each storage is there with its size. A file of another format is a fault that says
 * which it is. Close it whatever comes. */
int torch_open(MtcFault *fault, Arena *arena, const char *path, const char *key, TorchFile *file);
void torch_close(TorchFile *file);

/* Gives the tensors' elements to the writer, in the order of file->tensors; one storage is in memory at a time. */
int torch_write(MtcFault *fault, const TorchFile *file, MtcArchiveWriter *writer);

#endif
