/* libFuzzer harness: files for `mtc import`. A file is refused with a message, or becomes a text that mtc can parse; anything else
 * is a find. */
#define main compiler_main
#include "main.c"
#undef main

#include "import/import.h"

#include <sys/mman.h>

extern int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char folder[] = "/tmp/mtc-onnx-XXXXXX";
    static int file = -1;
    if (file < 0 && ((file = memfd_create("onnx", 0)) < 0 || !mkdtemp(folder)))
        abort();
    if (ftruncate(file, 0) != 0 || pwrite(file, data, size, 0) != (ssize_t)size)
        abort();
    Arena *arena = arena_new();
    Diag *diag = diag_new(arena);
    const AxisSize size_of_axis = {"T", "3"};
    const ImportRequest request = {.input = arena_printf(arena, "/proc/self/fd/%d", file),
                                   .output = path_in(arena, folder, "model.mt"),
                                   .sizes = &size_of_axis,
                                   .size_count = 1,
                                   .force = true};
    ImportRequest without = request; /* a size that no axis has is refused */
    without.size_count = 0;
    if ((import_onnx(diag, &request) == 0 || import_onnx(diag, &without) == 0) &&
        !front_parse(diag, arena, request.output))
        abort();
    arena_free(arena);
    return 0;
}
