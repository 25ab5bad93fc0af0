/* Habits from other frameworks and languages: habits.def says what is written here instead. */
#ifndef MTC_HABITS_H
#define MTC_HABITS_H

#include "op/reference.h"

#include <stdbool.h>
#include <stddef.h>

typedef enum HabitKind { SYMBOL, CALL, RENAMED, PARAMETER, KEY, SETTING, TYPE, MODULE, VALUES } HabitKind;

/* The advice on a word, or NULL. Symbols are compared as they are, names by their letters and digits, in any case. */
const char *habit(HabitKind kind, const char *word, size_t length);
const Synonym *habit_calls(void); /* all of CALL, behind them one without a word */
/* The table has a row with this advice on the word. */
bool habit_is(HabitKind kind, const char *word, const char *advice);
/* "LayerNorm" and "layer_norm" have the same. */
bool same_letters(const char *a, size_t length, const char *b);

#endif
