#include "front/habits.h"

#include <ctype.h>
#include <string.h>

static const struct Habit {
    HabitKind kind;
    const char *word, *advice;
} habits[] = {
#define HABIT(kind, word, advice) {kind, word, advice},
#include "front/habits.def"
#undef HABIT
};
enum { HABITS = sizeof habits / sizeof *habits };

bool same_letters(const char *a, size_t length, const char *b) {
    for (const char *end = a + length;;) {
        while (a < end && *a == '_')
            a++;
        while (*b == '_')
            b++;
        if (a == end || !*b)
            return a == end && !*b;
        if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
            return false;
    }
}

static bool is_row(const struct Habit *row, HabitKind kind, const char *word, size_t length) {
    if (row->kind != kind)
        return false;
    if (kind == SYMBOL)
        return strlen(row->word) == length && memcmp(row->word, word, length) == 0;
    return same_letters(word, length, row->word);
}

const char *habit(HabitKind kind, const char *word, size_t length) {
    for (int i = 0; i < HABITS; i++)
        if (is_row(&habits[i], kind, word, length))
            return habits[i].advice;
    return NULL;
}

const Synonym *habit_calls(void) {
    static Synonym found[HABITS + 1]; /* of a constant table: the same each time */
    int count = 0;
    for (int i = 0; i < HABITS; i++)
        if (habits[i].kind == CALL)
            found[count++] = (Synonym){habits[i].word, habits[i].advice};
    return found;
}

bool habit_is(HabitKind kind, const char *word, const char *advice) {
    for (int i = 0; i < HABITS; i++)
        if (is_row(&habits[i], kind, word, strlen(word)) && strcmp(habits[i].advice, advice) == 0)
            return true;
    return false;
}
