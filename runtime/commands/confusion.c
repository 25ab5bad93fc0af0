#include "commands/confusion.h"

#include "data/vocabulary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int matrix_classes(const MtcSession *session) {
    return session->confusion ? session->model->confusion->classes : 0;
}

/* Their words, where the data were words. */
static void add_classes(MtcText *text, const MtcSession *session, const char *prefix, int classes) {
    const MtcMeaning *words = mtc_class_words(session, classes);
    if (!words)
        return;
    mtc_text_add(text, ",\"%sclasses\":[", prefix);
    for (int i = 0; i < classes; i++) {
        mtc_text_add(text, "%s", i ? "," : "");
        mtc_text_json(text, i < words->words ? words->word[i] : "other");
    }
    mtc_text_add(text, "]");
}

void mtc_add_confusion(MtcText *text, const MtcSession *session, const char *prefix) {
    const int classes = matrix_classes(session);
    if (!classes)
        return;
    mtc_text_add(text, ",\"%sconfusion\":", prefix);
    for (int i = 0; i < classes * classes; i++)
        mtc_text_add(text, "%s%.12g", i % classes ? "," : i ? "],[" : "[[", session->confusion[i]);
    mtc_text_add(text, "]]");
    add_classes(text, session, prefix, classes);
}

/* In `to`, which it returns. */
static const char *class_name(const MtcMeaning *words, int class_, char *to, size_t size) {
    if (!words)
        snprintf(to, size, "%d", class_);
    else /* a class without a word is the one of words that training does not have */
        snprintf(to, size, "%s", class_ < words->words ? mtc_visible(words->word[class_]) : "other");
    return to;
}

/* How many examples, or what they weigh. In `to`, which it returns. */
static const char *count_text(double count, char *to, size_t size) {
    snprintf(to, size, count == floor(count) ? "%.0f" : "%.6g", count);
    return to;
}

/* Columns that each number and each name has a place in, with two spaces between. */
static int matrix_column(const MtcSession *session, const MtcMeaning *words, int classes) {
    char text[64];
    int widest = 0;
    for (int i = 0; i < classes * classes; i++) {
        const int digits = (int)strlen(count_text(session->confusion[i], text, sizeof text));
        const int name = i < classes ? mtc_characters(class_name(words, i, text, sizeof text)) : 0;
        widest = digits > widest ? digits : widest;
        widest = name > widest ? name : widest;
    }
    return widest + 2;
}

static void print_class_name(const MtcMeaning *words, int class_, int width) {
    char text[64];
    const char *name = class_name(words, class_, text, sizeof text);
    printf("%*s%s", width - mtc_characters(name), "", name);
}

void mtc_print_confusion(const MtcSession *session) {
    char text[64];
    const int classes = matrix_classes(session);
    const MtcMeaning *words = classes ? mtc_class_words(session, classes) : NULL;
    if (!classes)
        return;
    const int width = matrix_column(session, words, classes);
    printf("confusion: a row for each class, a column for what its examples were taken for\n%*s", width, "");
    for (int j = 0; j < classes; j++)
        print_class_name(words, j, width);
    for (int i = 0; i < classes; i++) {
        printf("\n");
        print_class_name(words, i, width);
        for (int j = 0; j < classes; j++)
            printf("%*s", width, count_text(session->confusion[i * classes + j], text, sizeof text));
    }
    printf("\n");
}
