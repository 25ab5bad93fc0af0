/* Words on mtc's command line that mean something elsewhere. */
#ifndef MTC_WORDS_H
#define MTC_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* What is called so by other tools: a flag without its dashes (flag NULL), or a choice of the flag; NULL: nothing. */
const char *usual_word(const char *flag, const char *word);
/* What other tools do first of all; a model file is called like it seldom, and then stands alone. */
bool is_verb(const char *word);

#endif
