/* Reading a checkpoint: what its metadata say. */
#include "checkpoint/checkpoint.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- metadata ---- */

const char *mtc_checkpoint_text(const MtcCheckpoint *checkpoint, const char *key) {
    char name[128];
    snprintf(name, sizeof name, "mtc.%s", key);
    return mtc_archive_metadata(&checkpoint->archive, name);
}

static int bad_meta(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key) {
    const char *text = mtc_checkpoint_text(checkpoint, key);
    if (!text)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: its metadata have no 'mtc.%s'", checkpoint->path, key);
    return mtc_fail(fault, MTC_BAD_DATA, "%s: 'mtc.%s' of its metadata is not what it should be: '%.40s'",
                    checkpoint->path, key, text);
}

static int read_count(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key, int64_t *value) {
    const char *text = mtc_checkpoint_text(checkpoint, key);
    char *end;
    errno = 0;
    *value = text ? strtoll(text, &end, 10) : 0;
    return !text || end == text || *end || errno || *value < 0 ? bad_meta(fault, checkpoint, key) : 0;
}

static int read_unsigned(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key, uint64_t *value) {
    const char *text = mtc_checkpoint_text(checkpoint, key);
    char *end;
    errno = 0;
    *value = text ? strtoull(text, &end, 10) : 0;
    return !text || end == text || *end || errno ? bad_meta(fault, checkpoint, key) : 0;
}

int mtc_checkpoint_number(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key, double *value) {
    const char *text = mtc_checkpoint_text(checkpoint, key);
    char *end;
    *value = text ? strtod(text, &end) : 0;
    return !text || end == text || *end ? bad_meta(fault, checkpoint, key) : 0;
}

static int read_sums(MtcFault *fault, const MtcCheckpoint *checkpoint, const char *key, int reports, MtcSums *sums) {
    const char *text = mtc_checkpoint_text(checkpoint, key);
    char *end;
    if (!text)
        return 0;
    for (int r = -1; r < reports; r++) {
        double value = strtod(text, &end);
        if (end == text)
            return bad_meta(fault, checkpoint, key);
        *(r < 0 ? &sums->examples : &sums->report[r]) = value;
        text = end;
    }
    return *text ? bad_meta(fault, checkpoint, key) : 0;
}

static int read_losses(MtcFault *fault, const MtcCheckpoint *checkpoint, MtcRecord *record) {
    const char *text = mtc_checkpoint_text(checkpoint, "losses");
    record->losses = text != NULL;
    if (text && sscanf(text, "%lf %lf", &record->first_loss, &record->loss) != 2)
        return bad_meta(fault, checkpoint, "losses");
    return mtc_checkpoint_text(checkpoint, "first_weight")
               ? mtc_checkpoint_number(fault, checkpoint, "first_weight", &record->first_weight)
               : 0;
}

/* Those of the model's that waited as long then as they do now; others begin to wait. */
static int read_plateaus(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcRecord *record) {
    const char *text = mtc_checkpoint_text(checkpoint, "plateaus");
    for (int length; text && *text; text += length) {
        int patience;
        long long waited, falls;
        if (sscanf(text, "%d %lld %lld %n", &patience, &waited, &falls, &length) != 3 || waited < 0 || falls < 0 ||
            falls > INT_MAX)
            return bad_meta(fault, checkpoint, "plateaus");
        for (int i = 0; i < model->plateaus; i++)
            if (model->plateau[i] == patience)
                record->plateau[i] = (MtcPlateau){waited, falls};
    }
    return 0;
}

int mtc_checkpoint_record(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, MtcRecord *record) {
    const char *monitor = mtc_checkpoint_text(checkpoint, "monitor");
    memset(record, 0, sizeof *record);
    record->epochs = checkpoint->epochs;
    int code = read_sums(fault, checkpoint, "epoch_sums", model->reports, &record->epoch);
    if (!code)
        code = read_sums(fault, checkpoint, "interval_sums", model->reports, &record->interval);
    if (!code)
        code = read_losses(fault, checkpoint, record);
    record->summary_due = mtc_checkpoint_text(checkpoint, "summary_due") != NULL;
    if (code || !monitor)
        return code;
    snprintf(record->monitor, sizeof record->monitor, "%s", monitor);
    code = mtc_checkpoint_number(fault, checkpoint, "best", &record->best);
    if (!code)
        code = read_count(fault, checkpoint, "best_step", &record->best_step);
    if (!code)
        code = read_count(fault, checkpoint, "since_best", &record->since_best);
    return code ? code : read_plateaus(fault, checkpoint, model, record);
}

int mtc_checkpoint_position(MtcFault *fault, const MtcCheckpoint *checkpoint, MtcPosition *at) {
    int code = read_count(fault, checkpoint, "step", &at->step);
    if (!code)
        code = read_count(fault, checkpoint, "epoch", &at->epoch);
    if (!code)
        code = read_count(fault, checkpoint, "epoch_step", &at->epoch_step);
    if (!code && (at->epoch_step > at->step || at->epoch > at->step))
        code = bad_meta(fault, checkpoint, "step");
    return code;
}

int mtc_checkpoint_data(MtcFault *fault, const MtcCheckpoint *checkpoint, int64_t *examples, uint64_t *hash) {
    const char *text = mtc_checkpoint_text(checkpoint, "data");
    long long count = 0;
    unsigned long long digits = 0;
    if (text && (sscanf(text, "%lld %16llx", &count, &digits) != 2 || count < 1))
        return bad_meta(fault, checkpoint, "data");
    *examples = count;
    *hash = digits;
    return 0;
}

/* What is known of every file of ours, whatever it is read for. */
static int read_head(MtcFault *fault, MtcCheckpoint *checkpoint) {
    int64_t version, weights;
    checkpoint->ours = mtc_checkpoint_text(checkpoint, "version") || mtc_checkpoint_text(checkpoint, "checksum") ||
                       mtc_checkpoint_text(checkpoint, "model_hash");
    if (!checkpoint->ours)
        return 0;
    if (!mtc_checkpoint_text(checkpoint, "checksum"))
        return bad_meta(fault, checkpoint, "checksum");
    int code = read_count(fault, checkpoint, "version", &version);
    if (!code && version != MTC_LAYOUT)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: its layout is version %lld; this program reads version %d",
                        checkpoint->path, (long long)version, MTC_LAYOUT);
    if (!code)
        code = read_count(fault, checkpoint, "weights", &weights);
    if (!code && weights > checkpoint->archive.count)
        code = bad_meta(fault, checkpoint, "weights");
    checkpoint->weights = code ? 0 : (int)weights;
    if (!code)
        code = read_unsigned(fault, checkpoint, "seed", &checkpoint->seed);
    if (!code)
        code = read_unsigned(fault, checkpoint, "split_seed", &checkpoint->split_seed);
    return code || !mtc_checkpoint_text(checkpoint, "epochs")
               ? code
               : read_count(fault, checkpoint, "epochs", &checkpoint->epochs);
}

int mtc_checkpoint_parse(MtcFault *fault, const char *path, const uint8_t *bytes, size_t size,
                         MtcCheckpoint *checkpoint) {
    memset(checkpoint, 0, sizeof *checkpoint);
    checkpoint->path = path;
    int code = mtc_archive_parse(fault, path, bytes, size, &checkpoint->archive);
    return code ? code : read_head(fault, checkpoint);
}

int mtc_checkpoint_open(MtcFault *fault, const char *path, MtcCheckpoint *checkpoint) {
    memset(checkpoint, 0, sizeof *checkpoint);
    checkpoint->path = path;
    int code = mtc_archive_read(fault, path, &checkpoint->archive);
    return code ? code : read_head(fault, checkpoint);
}

void mtc_checkpoint_close(MtcCheckpoint *checkpoint) {
    mtc_archive_free(&checkpoint->archive);
    free(checkpoint->integers);
    checkpoint->integers = NULL;
}

/* ---- the encoding ---- */

static int json_length(const MtcJson *array) {
    int count = 0;
    for (const MtcJson *item = array->first; item; item = item->next)
        count++;
    return count;
}

static int read_words(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcField *field, const MtcJson *words,
                      MtcMeaning *meaning) {
    int count = words->kind == MTC_JSON_ARRAY ? json_length(words) : 0;
    if (count < 1 || count > field->classes) {
        mtc_fail(fault, MTC_BAD_DATA, "%s: it has %d words for the field '%s', which has %d classes", checkpoint->path,
                 count, field->name, field->classes);
        if (count > 0)
            mtc_note(fault, "'%s: class[%d]' has room for them", field->name, count);
        return fault->code;
    }
    meaning->word = (char **)calloc((size_t)count, sizeof *meaning->word);
    if (!meaning->word)
        return mtc_no_memory(fault, (size_t)count * sizeof *meaning->word, field->name);
    for (const MtcJson *item = words->first; item; item = item->next) {
        char *word = item->kind == MTC_JSON_STRING ? strdup(item->string) : NULL;
        bool sorted = word && (!meaning->words || strcmp(meaning->word[meaning->words - 1], word) < 0);
        if (word)
            meaning->word[meaning->words++] = word;
        if (!sorted)
            return mtc_fail(fault, MTC_BAD_DATA, "%s: the words of the field '%s' are not sorted", checkpoint->path,
                            field->name);
    }
    return 0;
}

static int read_means(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcField *field, const MtcJson *means,
                      MtcMeaning *meaning) {
    int64_t element = 0;
    bool good = means->kind == MTC_JSON_ARRAY && json_length(means) == mtc_row_elements(field);
    meaning->mean = good ? (double *)calloc((size_t)mtc_row_elements(field), sizeof *meaning->mean) : NULL;
    for (const MtcJson *item = means->first; item && meaning->mean; item = item->next) {
        good = good && item->kind == MTC_JSON_NUMBER;
        meaning->mean[element++] = item->number;
    }
    return good && meaning->mean
               ? 0
               : mtc_fail(fault, MTC_BAD_DATA, "%s: it has no mean for each element of the field '%s'",
                          checkpoint->path, field->name);
}

static int read_learned_tokenizer(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcField *field,
                                  const MtcJson *tokenizer, const MtcJson *digest, MtcMeaning *meaning) {
    enum { DIGITS = 16 };
    char *end = NULL;
    if (tokenizer->kind == MTC_JSON_STRING && digest && digest->kind == MTC_JSON_STRING &&
        strspn(digest->string, "0123456789abcdef") == DIGITS)
        meaning->digest = strtoull(digest->string, &end, DIGITS);
    if (!end || *end)
        return mtc_fail(fault, MTC_BAD_DATA, "%s: it has no name and digest of the tokenizer of the field '%s'",
                        checkpoint->path, field->name);
    meaning->tokenizer = strdup(tokenizer->string);
    return 0;
}

static int read_meanings(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model, const MtcJson *root,
                         MtcEncoding *encoding) {
    int code = 0;
    for (int i = 0; i < model->fields && !code; i++) {
        const MtcField *field = &model->field[i];
        const MtcJson *entry = root->kind == MTC_JSON_OBJECT ? mtc_json_member(root, field->name) : NULL;
        const MtcJson *words = entry ? mtc_json_member(entry, "words") : NULL;
        const MtcJson *means = entry ? mtc_json_member(entry, "mean") : NULL;
        if (words)
            code = read_words(fault, checkpoint, field, words, &encoding->field[i]);
        const MtcJson *tokenizer = entry ? mtc_json_member(entry, "tokenizer") : NULL;
        if (tokenizer && !code)
            code = read_learned_tokenizer(fault, checkpoint, field, tokenizer, mtc_json_member(entry, "digest"),
                                          &encoding->field[i]);
        if (means && !code)
            code = read_means(fault, checkpoint, field, means, &encoding->field[i]);
    }
    return code;
}

int mtc_checkpoint_encoding(MtcFault *fault, const MtcCheckpoint *checkpoint, const MtcModel *model,
                            MtcEncoding *encoding) {
    const char *text = mtc_checkpoint_text(checkpoint, "encoding");
    MtcJsonDocument *document = NULL;
    memset(encoding, 0, sizeof *encoding);
    if (!text)
        return 0;
    char *copy = strdup(text); /* reading changes it */
    int code = copy ? mtc_json_read(fault, checkpoint->path, copy, strlen(copy), &document)
                    : mtc_no_memory(fault, strlen(text), checkpoint->path);
    if (!code) {
        code = read_meanings(fault, checkpoint, model, mtc_json_root(document), encoding);
        mtc_json_free(document);
    }
    free(copy);
    if (code)
        mtc_encoding_free(encoding);
    encoding->known = !code;
    return code;
}
