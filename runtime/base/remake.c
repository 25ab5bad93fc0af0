/* The command that makes a program once more, with another setting. */
#include "base/files.h"

#include <stdlib.h>
#include <string.h>

/* A word as a shell takes it back whole. */
static void add_quoted(MtcText *text, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,%@";
    if (*word && !word[strspn(word, plain)]) {
        mtc_text_add(text, " %s", word);
        return;
    }
    mtc_text_add(text, " '");
    for (; *word; word++)
        mtc_text_add(text, *word == '\'' ? "'\\''" : "%c", *word);
    mtc_text_add(text, "'");
}

/* Does the setting give way to the flag? Its own value does, and what the flag's other value goes without. */
static bool gives_way(const char *setting, const char *flag, const char *value) {
    static const struct {
        const char *flag, *without;
    } pairs[] = {{"--target", "--arch "},
                 {"--target", "--schedule "},
                 {"--target", "--real "},
                 {"--recompute", "--no-recompute"},
                 {"--no-recompute", "--recompute"}};
    size_t length = strlen(flag), name = strcmp(flag, "--set") == 0 ? strcspn(value, "=") + 1 : 0;
    if (strncmp(setting, flag, length) == 0 && (!setting[length] || setting[length] == ' ') &&
        (!name || strncmp(setting + length + 1, value, name) == 0))
        return true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(flag, pairs[i].flag) == 0 && strncmp(setting, pairs[i].without, strlen(pairs[i].without)) == 0)
            return true;
    return false;
}

void mtc_remake(MtcText *text, const MtcModel *model, const char *flag, const char *value, const char *program) {
    mtc_text_add(text, "mtc");
    char *path = mtc_model_path(model->source);
    add_quoted(text, path);
    free(path);
    if (strcmp(flag, "--target") != 0)
        mtc_text_add(text, " --target %s", model->target);
    for (int i = 0; i < model->settings; i++) {
        const char *setting = model->setting[i], *space = strchr(setting, ' ');
        if (gives_way(setting, flag, value))
            continue;
        mtc_text_add(text, " %.*s", (int)strcspn(setting, " "), setting);
        if (space)
            add_quoted(text, space + 1);
    }
    mtc_text_add(text, " %s", flag);
    if (*value)
        add_quoted(text, value);
    mtc_text_add(text, program ? " -o" : " --shared");
    if (program)
        add_quoted(text, program);
}
