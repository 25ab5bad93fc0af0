/* Reads windows of a text or of tokens by a model that its arguments describe, and prints them.
 *
 *     windows FORMAT PATH CLASSES LENGTH STRIDE [--input FILE | --encode TEXT | --cut SIZE | --put AT] [SPLIT:FROM:TO]...
 *
 * Prints a line for each window: the split, then its tokens; then, on stderr, the characters. --encode prints the tokens of
 * a text, and what is decoded from them. What another program might do to the file once it is open: --cut makes it as long
 * as that, --put writes 65535 there and leaves its time as it was. */
#include "data/source.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static MtcField field = {.name = "window", .rank = 1, .windows = true, .predicts = true};
static MtcOrigin origin = {.paths = 1};
static MtcSplit split[8];
static MtcModel model = {
    .source = "model.mt", .fields = 1, .field = &field, .origins = 1, .origin = &origin, .split = split};

static void add_split(char *text) {
    char *from = strchr(text, ':'), *to = strchr(from + 1, ':');
    *from = 0;
    split[model.splits++] = (MtcSplit){.name = text, .from = atof(from + 1), .to = atof(to + 1)};
}

static int print_windows(MtcFault *fault, const char *name, const MtcExamples *examples) {
    void *window = malloc(mtc_example_bytes(&field));
    int code = 0;
    for (int64_t e = 0; e < examples->count && !code; e++) {
        code = mtc_read_example(fault, &model, examples, 0, e, window);
        printf("%s", code ? "" : name);
        for (int64_t i = 0; i < field.elements && !code; i++)
            printf(" %lld", (long long)mtc_class_at(&field, window, i));
        printf("\n");
    }
    free(window);
    return code;
}

/* What is done to the file once it is open; -1: nothing. */
static long cut = -1, put = -1;

static void change_file(const char *path) {
    struct stat status;
    int file = open(path, O_RDWR);
    if (fstat(file, &status) != 0 || (cut >= 0 && ftruncate(file, cut) != 0))
        abort();
    const struct timespec times[] = {status.st_atim, status.st_mtim};
    if (put >= 0 && (pwrite(file, "\xff\xff", 2, put) != 2 || futimens(file, times) != 0))
        abort();
    close(file);
}

static int read_splits(MtcFault *fault, MtcReading *reading, MtcEncoding *encoding, bool shown) {
    MtcExamples examples[8];
    const char *name[8];
    for (int i = 0; i < model.splits; i++)
        name[i] = split[i].name;
    int code = mtc_read_splits(fault, &model, reading, encoding, name, model.splits, examples);
    for (int i = 0; i < model.splits && !code; i++) {
        if (i == 0 && (cut >= 0 || put >= 0))
            change_file(origin.path[0]);
        if (shown)
            code = print_windows(fault, name[i], &examples[i]);
    }
    for (int i = 0; i < model.splits; i++)
        mtc_examples_free(&examples[i]);
    for (int k = 0; k < encoding->field[0].words && !code && shown; k++)
        fprintf(stderr, "%s\n", mtc_visible(encoding->field[0].word[k]));
    return code;
}

static int encode(MtcFault *fault, const MtcEncoding *encoding, const char *text) {
    MtcVocabulary vocabulary;
    int32_t *token;
    int64_t count;
    char bytes[MTC_TOKEN_BYTES];
    int code = mtc_vocabulary_of(fault, &model, encoding, &vocabulary);
    if (!code)
        code = mtc_encode_text(fault, &vocabulary, "--prompt", text, strlen(text), &token, &count);
    if (code)
        return code;
    for (int64_t i = 0; i < count; i++)
        printf(i ? " %d" : "%d", token[i]);
    printf("\n");
    for (int64_t i = 0; i < count; i++)
        fwrite(bytes, 1, mtc_decode_token(&vocabulary, token[i], bytes), stdout);
    fwrite(bytes, 1, mtc_decode_token(&vocabulary, field.classes, bytes), stdout); /* stands for nothing */
    free(token);
    return 0;
}

static int read_input(MtcFault *fault, MtcReading *reading, const MtcEncoding *encoding, const char *path) {
    MtcExamples examples;
    int code = mtc_read_input(fault, &model, reading, encoding, &path, 1, &examples);
    if (!code)
        code = print_windows(fault, "input", &examples);
    mtc_examples_free(&examples);
    return code;
}

int main(int argc, char **argv) {
    static MtcFault fault;
    static MtcEncoding encoding;
    MtcReading reading = {.folder = "."};
    const char *path = argv[2], *input = NULL, *text = NULL;
    origin.format = argv[1];
    origin.path = &path;
    field.classes = atoi(argv[3]);
    field.elements = field.dim[0] = atoi(argv[4]);
    origin.stride = atoi(argv[5]);
    field.type = field.classes <= 256 ? MTC_U8 : field.classes <= 65536 ? MTC_U16 : MTC_I32;
    for (int i = 6; i < argc; i++)
        if (strcmp(argv[i], "--input") == 0)
            input = argv[++i];
        else if (strcmp(argv[i], "--encode") == 0)
            text = argv[++i];
        else if (strcmp(argv[i], "--cut") == 0)
            cut = atol(argv[++i]);
        else if (strcmp(argv[i], "--put") == 0)
            put = atol(argv[++i]);
        else
            add_split(argv[i]);
    int code = read_splits(&fault, &reading, &encoding, !input && !text);
    if (!code && input)
        code = read_input(&fault, &reading, &encoding, input);
    if (!code && text)
        code = encode(&fault, &encoding, text);
    if (code)
        fprintf(stderr, "%s\n", fault.text);
    mtc_encoding_free(&encoding);
    return code;
}
