/* Reads the data sets of a model that its arguments describe, and prints them: the runtime's reading, without a compiler.
 *
 *     splits FORMAT PATH[,PATH] NAMES [--seed N] [--skip] [--input FILE,FILE] [--swap NAME] FIELD... -- SPLIT...
 *
 * FIELD: name:type:classes:part:missing:columns, such as "x:f32:0:value:error:a+b"; missing: error, skip, mean, "=word",
 * "#number"; a "*" after the classes: unseen words are the last one; a "!" before the name: the prediction needs it.
 * SPLIT: name:from:to. --input prints a file of examples instead. Prints a line for each row, fields between bars; then,
 * on stderr, bad rows, and the words and means of each field. */
#include "data/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MtcField field[8];
static MtcSplit split[8];
static MtcOrigin origin;
static MtcModel model;
static MtcReading reading;
static const char *input[8];
static int inputs;

/* Splits a text at each `mark`. */
static int cut(char *text, char mark, const char **part) {
    int count = 0;
    while (text && *text) {
        part[count++] = text;
        text = strchr(text, mark);
        if (text)
            *text++ = 0;
    }
    return count;
}

static void set_missing(MtcColumns *columns, const char *text) {
    static const char *const name[] = {"error", "skip", "mean"};
    columns->missing = MTC_MISSING_VALUE;
    for (int i = 0; i < 3; i++)
        if (strcmp(text, name[i]) == 0)
            columns->missing = (MtcMissing)i;
    if (text[0] == '=')
        columns->missing_text = text + 1;
    if (text[0] == '#')
        columns->missing_value = atof(text + 1);
}

static void add_field(char *text) {
    static const char *column[8][16];
    static const char *const types[] = {"f32", "i32", "u8"}, *const parts[] = {"value", "day", "month", "weekday"};
    MtcField *f = &field[model.fields];
    const char *part[8];
    cut(text, ':', part);
    f->predicts = part[0][0] == '!';
    f->name = part[0] + f->predicts;
    for (int i = 0; i < 3; i++)
        if (strcmp(part[1], types[i]) == 0)
            f->type = (MtcType)i;
    f->classes = atoi(part[2]);
    f->columns.unseen_other = strchr(part[2], '*') != NULL;
    for (int i = 0; i < 4; i++)
        if (strcmp(part[3], parts[i]) == 0)
            f->columns.part = (MtcPart)i;
    set_missing(&f->columns, part[4]);
    f->columns.date_format = "%Y-%m-%d";
    f->columns.count = cut((char *)part[5], '+', column[model.fields]);
    f->columns.name = column[model.fields++];
    f->elements = f->columns.count;
    f->rank = f->elements > 1;
    f->dim[0] = f->elements;
}

static void add_split(char *text) {
    const char *part[8];
    cut(text, ':', part);
    MtcSplit s = {.name = part[0], .from = atof(part[1]), .to = atof(part[2])};
    split[model.splits++] = s;
}

static void print_field(const MtcField *f, const void *values, int64_t row) {
    for (int64_t i = row * f->elements; i < (row + 1) * f->elements; i++)
        if (f->type == MTC_F32)
            printf(" %.9g", (double)((const float *)values)[i]);
        else
            printf(" %d", f->type == MTC_U8 ? ((const uint8_t *)values)[i] : ((const int32_t *)values)[i]);
    printf(" |");
}

static void print_examples(const char *name, const MtcExamples *examples) {
    for (int64_t row = 0; row < examples->count; row++) {
        printf("%s |", name);
        for (int f = 0; f < model.fields; f++)
            if (examples->field[f])
                print_field(&field[f], examples->field[f], row);
        printf("\n");
    }
}

static void print_meaning(const MtcEncoding *encoding) {
    fprintf(stderr, "%lld bad: %s\n", (long long)reading.skipped, reading.first_bad);
    for (int f = 0; f < model.fields; f++) {
        for (int k = 0; k < encoding->field[f].words; k++)
            fprintf(stderr, "%s %d %s\n", field[f].name, k, encoding->field[f].word[k]);
        for (int e = 0; e < field[f].elements && encoding->field[f].mean; e++)
            fprintf(stderr, "%s mean %.9g\n", field[f].name, encoding->field[f].mean[e]);
    }
}

static int read_all(MtcFault *fault, MtcEncoding *encoding) {
    MtcExamples examples[8], asked;
    const char *name[8];
    for (int i = 0; i < model.splits; i++)
        name[i] = split[i].name;
    int code = mtc_read_splits(fault, &model, &reading, encoding, name, model.splits, examples);
    for (int i = 0; i < model.splits && !code; i++) {
        if (!inputs)
            print_examples(name[i], &examples[i]);
        mtc_examples_free(&examples[i]);
    }
    if (code || !inputs)
        return code;
    code = mtc_read_input(fault, &model, &reading, encoding, input, inputs, &asked);
    if (!code)
        print_examples("input", &asked);
    mtc_examples_free(&asked);
    return code;
}

int main(int argc, char **argv) {
    static const char *path[8], *name[64];
    static MtcFault fault;
    static MtcEncoding encoding;
    bool table = strcmp(argv[1], "tsv") == 0 || strcmp(argv[1], "csv") == 0, splits = false;
    origin.format = argv[1];
    origin.paths = cut(argv[2], ',', path);
    origin.path = path;
    origin.columns = table ? cut(argv[3], ',', name) : 0;
    origin.column = name;
    origin.header = table && origin.columns == 0;
    origin.separator = argv[1][0] == 't' ? '\t' : ',';
    origin.quote = argv[1][0] == 't' ? 0 : '"';
    model.source = "m.mt";
    for (int i = 4; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            splits = true;
        else if (strcmp(argv[i], "--seed") == 0)
            reading.seed = (uint64_t)atoll(argv[++i]);
        else if (strcmp(argv[i], "--skip") == 0)
            reading.skip_bad_rows = true;
        else if (strcmp(argv[i], "--input") == 0)
            inputs = cut(argv[++i], ',', input);
        else
            (splits ? add_split : add_field)(argv[i]);
    model.field = field;
    model.split = split;
    model.origin = &origin;
    model.origins = 1;
    int code = read_all(&fault, &encoding);
    if (code)
        fprintf(stderr, "%s\n", fault.text);
    else
        print_meaning(&encoding);
    mtc_encoding_free(&encoding);
    return code;
}
