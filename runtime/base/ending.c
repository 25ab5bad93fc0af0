#include "base/ending.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *ending, *format;
} formats[] = {
    {".csv", "CSV"},
    {".tsv", "TSV"},
    {".parquet", "Parquet"},
    {".feather", "Feather"},
    {".arrow", "Arrow"},
    {".xlsx", "a workbook of Excel"},
    {".json", "one value of JSON"},
    {".jsonl", "JSON lines"},
    {".npy", "an array of NumPy"},
    {".npz", "an archive of NumPy"},
    {".mat", "a file of MATLAB"},
    {".pt", "a pickle of PyTorch"},
    {".pth", "a pickle of PyTorch"},
    {".pkl", "a pickle of Python"},
    {".pickle", "a pickle of Python"},
    {".h5", "HDF5"},
    {".hdf5", "HDF5"},
    {".keras", "a model of Keras"},
    {".onnx", "ONNX"},
    {".gguf", "GGUF"},
    {".safetensors", "safetensors"},
    {".svg", "SVG"},
    {".png", "PNG"},
    {".jpg", "JPEG"},
    {".jpeg", "JPEG"},
    {".gif", "GIF"},
    {".webp", "WebP"},
    {".tif", "TIFF"},
    {".tiff", "TIFF"},
    {".bmp", "a bitmap"},
    {".pdf", "PDF"},
    {".ps", "PostScript"},
    {".eps", "PostScript"},
    {".html", "HTML"},
    {".gz", "a file of gzip"},
    {".zip", "a zip archive"},
    {".txt", "text"},
    {".md", "text"},
    {".py", "a program of Python"},
    {".ipynb", "a notebook"},
    {".mt", "a model of mtc"},
    {".c", "C"},
    {".h", "C"},
    {".cu", "CUDA C++"},
    {".cpp", "C++"},
    {".cc", "C++"},
    {".cxx", "C++"},
    {".sh", "a script of a shell"},
    {".o", "an object file"},
    {".a", "a library of object files"},
    {".so", "a shared library"},
    {".dylib", "a shared library of macOS"},
    {".dll", "a shared library of Windows"},
    {".exe", "a program of Windows"},
};

bool mtc_ends_with(const char *path, const char *ending) {
    const size_t length = strlen(path), end = strlen(ending);
    return length > end && strcasecmp(path + length - end, ending) == 0;
}

/* Is the ending one of those in the list? */
static bool is_listed(const char *ending, const char *list) {
    const size_t length = strlen(ending);
    for (const char *at = list; (at = strstr(at, ending)) != NULL; at += length)
        if (!at[length] || strchr(", ", at[length]))
            return true;
    return false;
}

const char *mtc_promised(const char *path, const char *written) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (mtc_ends_with(path, formats[i].ending))
            return is_listed(formats[i].ending, written) ? NULL : formats[i].format;
    return NULL;
}

int mtc_check_ending(MtcFault *fault, const char *flag, const char *path, const char *written) {
    const char *format = path ? mtc_promised(path, written) : NULL;
    if (!format)
        return 0;
    return mtc_fail(fault, MTC_USAGE, "%s %s: the name promises %s; what can be written is %s", flag, path, format,
                    written);
}
