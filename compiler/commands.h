/* The commands of mtc that compile no model: plot, tokens, weights, import. Each returns the code to exit with, after a report. */
#ifndef MTC_COMMANDS_H
#define MTC_COMMANDS_H

#include "options.h"
#include "support/output.h"

/* `inputs` are not overwritten. */
int draw_curves(Diag *diag, const Options *options, const InputFiles *inputs);
int make_tokens(Diag *diag, const Options *options, const InputFiles *inputs);
int convert_weights(Diag *diag, const Options *options, const InputFiles *inputs);
int import_model(Diag *diag, const Options *options);

/* Does the name promise something else than is written? `endings`: those of what is. `cure`: where no flag writes what is
 * promised; NULL: there is none. */
bool promises_else(Diag *diag, const char *output, const char *endings, const char *written, const char *cure);

#endif
