#include "options.h"

#include "flags.h"
#include "ir/graph.h"
#include "support/text.h"
#include "words.h"

#include <stdlib.h>
#include <unistd.h>

static const Span nowhere = {0};

/* ---- parsing ---- */

static const Flag *flag_named(const char *name, size_t length) {
    for (int i = 0; i < FLAGS; i++)
        if (strlen(flags[i].name) == length && strncmp(flags[i].name, name, length) == 0)
            return &flags[i];
    return NULL;
}

static const Flag *flag_lettered(char letter) {
    for (int i = 0; i < FLAGS; i++)
        if (flags[i].letter && flags[i].letter == letter)
            return &flags[i];
    return NULL;
}

static bool is_number(const char *text) {
    char *end;
    strtod(text, &end);
    return end != text && !*end;
}

/* The flag that was meant, or NULL. Names are compared without their dashes. */
static const Flag *meant_flag(const char *bare) {
    const char *names[FLAGS];
    for (int i = 0; i < FLAGS; i++)
        names[i] = flags[i].name + strlen("--");
    const char *usual = usual_word(NULL, bare), *nearest = usual ? usual : nearest_name(bare, names, FLAGS);
    for (int i = 0; nearest && i < FLAGS; i++)
        if (strcmp(names[i], nearest) == 0)
            return &flags[i];
    return NULL;
}

/* `value`: what is written behind it, or NULL. */
static bool unknown_flag(Diag *diag, const char *name, const char *value) {
    const char *bare = name + strspn(name, "-");
    const Flag *meant = meant_flag(bare);
    if (program_flag(bare))
        diag_error(diag, nowhere, "%s is a flag of the program that mtc makes: ./PROGRAM %s%s%s", name, name,
                   value ? " " : "", value ? value : "");
    else if (meant)
        diag_error(diag, nowhere, "unknown option '%s'; did you mean '%s'?", name, meant->name);
    else if (value && is_number(value))
        diag_error(diag, nowhere, "unknown option '%s'; a param of the model is set with --set %s=%s", name, bare,
                   value);
    else
        diag_error(diag, nowhere, "unknown option '%s'; 'mtc --help' lists the options", name);
    return false;
}

static bool set_choice(const Flag *flag, int *field, Diag *diag, const char *value) {
    char *choices = arena_strdup(diag_arena(diag), flag->argument);
    const char *names[16];
    int count = 0;
    for (char *rest = choices, *name; (name = strtok_r(rest, "|", &rest));)
        names[count++] = name;
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], value) == 0)
            return *field = flag->bound + i, true;
    const char *usual = usual_word(flag->name, value), *nearest = usual ? usual : nearest_name(value, names, count);
    diag_error(diag, nowhere, "%s takes %s, not '%s'%s%s%s", flag->name, flag->argument, value,
               nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return false;
}

static bool set_number(const Flag *flag, int *field, Diag *diag, const char *value) {
    char *end;
    long number = strtol(value, &end, 10);
    if (*end || end == value || number < 1 || number > flag->bound) {
        diag_error(diag, nowhere, "%s takes a number from 1 to %d, not '%s'", flag->name, flag->bound, value);
        return false;
    }
    *field = (int)number;
    return true;
}

static bool add_setting(Options *options, Diag *diag, const char *value) {
    Arena *arena = diag_arena(diag);
    const char *equals = strchr(value, '=');
    if (!equals || equals == value || !equals[1]) {
        diag_error(diag, nowhere, "--set takes NAME=VALUE, not '%s'", value);
        return false;
    }
    ParamSetting setting = {arena_strndup(arena, value, (size_t)(equals - value)), equals + 1};
    for (int i = 0; i < options->settings.count; i++)
        if (strcmp(options->settings.at[i].name, setting.name) == 0) {
            diag_error(diag, nowhere, "--set %s is given twice", setting.name);
            return false;
        }
    VEC_PUSH(arena, &options->settings, setting);
    return true;
}

/* Other than before. Each can be repeated as it was. */
static bool is_contradicted(const Options *options, const Flag *flag, const Options *before) {
    const char *field = (const char *)options + flag->field, *old = (const char *)before + flag->field;
    if (flag->kind == FLAG_STRING) {
        const char *const *text = (const char *const *)(const void *)field, *const *first = (const void *)old;
        return *first && strcmp(*first, *text) != 0;
    }
    const int first = flag->kind == FLAG_NUMBER || flag->kind == FLAG_CHOICE ? *(const int *)(const void *)old : 0;
    return first && first != *(const int *)(const void *)field;
}

static bool store_flag(Options *options, const Flag *flag, Diag *diag, const char *value) {
    void *field = (char *)options + flag->field;
    switch (flag->kind) {
    case FLAG_SWITCH: *(bool *)field = true; return true;
    case FLAG_STRING: *(const char **)field = value; return true;
    case FLAG_NUMBER: return set_number(flag, field, diag, value);
    case FLAG_CHOICE: return set_choice(flag, field, diag, value);
    case FLAG_SETTING: return add_setting(options, diag, value);
    }
    return false;
}

static bool set_flag(Options *options, const Flag *flag, Diag *diag, const char *value) {
    const Options before = *options;
    bool good = store_flag(options, flag, diag, value);
    if (!good || !is_contradicted(options, flag, &before))
        return good;
    diag_error(diag, nowhere, "%s is given twice, with different values: which?", flag->name);
    return false;
}

/* The value of a flag: after '=', after the letter, or the next argument, which *at then passes over. */
static const char *flag_value(const Flag *flag, Diag *diag, const char *attached, int argc, char **argv, int *at) {
    if (attached && *attached)
        return attached;
    if (!attached && *at + 1 < argc)
        return argv[++*at];
    diag_error(diag, nowhere, "%s needs a value: %s", flag->name, flag->argument);
    return NULL;
}

static bool flag_applies(const Options *options, const Flag *flag, Diag *diag) {
    const Command *asked = command_of(options);
    if (asked && !command_takes(asked, flag)) {
        const char *lists = arena_printf(diag_arena(diag), "'mtc %s --help' lists its options", asked->name);
        diag_error(diag, nowhere, "%s has no option %s; %s", asked->name, flag->name,
                   asked->otherwise ? asked->otherwise : lists);
        return false;
    }
    for (const Command *command = commands; command < commands + COMMANDS; command++)
        if (command != asked && command->group && flag->group == command->group) {
            diag_error(diag, nowhere, "%s is an option of 'mtc %s'", flag->name, command->name);
            return false;
        }
    return true;
}

/* Is the next word the value of a flag that is none of mtc's? So that it is not taken for a model file. */
static bool takes_value(const char *name, const char *next) {
    const char *bare = name + strspn(name, "-"), *ending = strrchr(next, '.');
    const ProgramFlag *flag = program_flag(bare);
    const Flag *meant = meant_flag(bare);
    if (flag)
        return flag->argument != NULL;
    return is_number(next) || (meant && meant->argument && next[0] != '-' && !(ending && strcmp(ending, ".mt") == 0));
}

/* gradcheck runs the program: its flags, and those that may be params, need no -- before them. */
static bool goes_to_program(const char *name, const char *value) {
    const char *bare = name + strspn(name, "-"), *own[FLAGS];
    int count = 0;
    for (const Flag *flag = flags; flag < flags + FLAGS; flag++)
        if (flag_is_of_gradcheck(flag))
            own[count++] = flag->name + strlen("--");
    return program_flag(bare) || (value && is_number(value) && !nearest_name(bare, own, count));
}

static bool pass_on(Options *options, Diag *diag, const char *word, const char *value) {
    VEC_PUSH(diag_arena(diag), &options->program_flags, word);
    if (value)
        VEC_PUSH(diag_arena(diag), &options->program_flags, value);
    return true;
}

static bool parse_flag(Options *options, Diag *diag, int argc, char **argv, int *at) {
    const char *word = argv[*at];
    bool longer = word[1] == '-';
    const char *equals = longer ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const Flag *flag = longer ? flag_named(word, length) : flag_lettered(word[1]);
    if (!flag) {
        const char *name = arena_strndup(diag_arena(diag), word, length), *value = equals ? equals + 1 : NULL;
        if (!equals && *at + 1 < argc && takes_value(name, argv[*at + 1]))
            value = argv[++*at];
        return options->gradcheck && goes_to_program(name, value) ? pass_on(options, diag, word, equals ? NULL : value)
                                                                  : unknown_flag(diag, name, value);
    }
    const char *attached = longer ? (equals ? equals + 1 : NULL) : word[2] ? word + 2 : NULL;
    if (!flag_applies(options, flag, diag)) {
        *at += flag->argument && !attached;
        return false;
    }
    if (flag->argument) {
        const char *value = flag_value(flag, diag, attached, argc, argv, at);
        return value && set_flag(options, flag, diag, value);
    }
    if (attached) {
        diag_error(diag, nowhere, "%s takes no value", flag->name);
        return false;
    }
    return set_flag(options, flag, diag, "");
}

/* "hidden=3" */
static bool is_setting(const char *word) {
    const size_t name = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return name && word[name] == '=';
}

static bool parse_input(Options *options, Diag *diag, const char *word) {
    if (options->explain && options->input && !options->explained) {
        options->explained = word;
        return true;
    }
    if (options->plot || options->tokens || options->weights) {
        VEC_PUSH(diag_arena(diag), &options->files, strcmp(word, "-") == 0 ? "/dev/stdin" : word);
        return true;
    }
    if (options->input && is_verb(options->input)) {
        diag_error(diag, nowhere, "'%s' is no command of mtc: mtc %s -o PROGRAM makes a program, and ./PROGRAM trains",
                   options->input, word);
        return false;
    }
    if (options->input) {
        const char *ending = strrchr(word, '.');
        if (is_setting(word))
            diag_error(diag, nowhere, "'%s' is no file; a param gets another value by --set %s", word, word);
        else if (ending && strcmp(ending, ".mt") == 0)
            diag_error(diag, nowhere, "two model files, '%s' and '%s'; mtc compiles one at a time", options->input,
                       word);
        else
            diag_error(diag, nowhere, "two model files, '%s' and '%s'; the program's name comes after -o: -o %s",
                       options->input, word, word);
        return false;
    }
    options->input = strcmp(word, "-") == 0 ? "/dev/stdin" : word;
    return true;
}

/* The first word says what is to be done; false: a program. */
static bool parse_command(Options *options, const char *word) {
    for (const Command *command = commands; command < commands + COMMANDS; command++)
        if (strcmp(word, command->name) == 0)
            return *(bool *)((char *)options + command->field) = true;
    return false;
}

static bool parse_words(Options *options, Diag *diag, int argc, char **argv) {
    bool good = true, flags_ended = false, commanded = argc > 1 && parse_command(options, argv[1]);
    if (argc == 2 && strcmp(argv[1], "help") == 0 && access("help", F_OK) != 0)
        return options->help = true;
    for (int i = 1 + commanded; i < argc; i++) {
        if (flags_ended && options->gradcheck)
            VEC_PUSH(diag_arena(diag), &options->program_flags, argv[i]);
        else if (!flags_ended && strcmp(argv[i], "--") == 0)
            flags_ended = true;
        else if (!flags_ended && argv[i][0] == '-' && argv[i][1])
            good &= parse_flag(options, diag, argc, argv, &i);
        else
            good &= parse_input(options, diag, argv[i]);
    }
    return good;
}

/* ---- combinations ---- */

const Target *options_target(const Options *options) {
    if (options->emit >= EMIT_SOURCE)
        return &targets[options->emit - EMIT_SOURCE];
    return options->target ? &targets[options->target - 1] : NULL;
}

static bool lacks_int8(const Options *o) {
    return o->precision == 1 + PRECISION_INT8 && o->real == REAL_F64;
}

typedef struct Rule {
    bool wrong;
    const char *why;
} Rule;

static bool rules_hold(const Rule *rules, size_t count, Diag *diag) {
    for (size_t i = 0; i < count; i++)
        if (rules[i].wrong)
            diag_error(diag, nowhere, "%s", rules[i].why);
    return diag_errors(diag) == 0;
}

/* What a command is about is given. */
static bool command_holds(const Options *o, Diag *diag) {
    bool informs = o->plot || o->tokens || o->weights || o->operators || o->list_options || o->version || o->help;
    const Rule rules[] = {
        {!o->input && !informs, "no model file; 'mtc --help' shows how to call mtc"},
        {o->plot && !o->files.count && !o->help, "no log to plot; 'mtc plot --help' shows how to call it"},
        {o->tokens && !o->files.count && !o->help, "no text to encode; 'mtc tokens --help' shows how to call it"},
        {o->tokens && !o->tokenizer && !o->learn && !o->help,
         "--tokenizer FILE says which tokens; --learn N makes a tokenizer"},
        {o->tokenizer && o->learn, "choose one of --tokenizer and --learn"},
        {o->learn && o->learn <= 256, "--learn: each of the 256 bytes is a token, and N counts them; choose more"},
        {o->tokens && !o->output && !o->help, "-o FILE says where the result is written"},
        {o->weights && o->files.count != 1 && !o->help,
         "weights takes one file of torch.save; 'mtc weights --help' shows how to call it"},
        {o->weights && !o->output && !o->help, "-o FILE.safetensors says where the weights are written"},
    };
    return rules_hold(rules, sizeof rules / sizeof *rules, diag);
}

static bool combinations_hold(const Options *o, Diag *diag) {
    const Target *asked = options_target(o);
    const bool scaling = o->emit == EMIT_SCALING;
    bool other_source = o->target && o->emit >= EMIT_SOURCE && o->target - 1 != o->emit - EMIT_SOURCE;
    const Rule rules[] = {
        {other_source, "--emit=cu is of --target cuda, --emit=c of --target cpu"},
        {o->real == REAL_F64 && !(asked && asked->doubles), "--real f64 is of the cpu target; add --target cpu"},
        {o->arch && asked && !asked->gpu, "--arch names GPUs; it does not go with the cpu target"},
        {o->arch && ((o->emit != EMIT_PROGRAM && o->emit < EMIT_SPLIT) || o->format),
         "--arch names the GPUs that a program is for; this stage comes before they matter"},
        {o->schedule != SCHEDULE_AUTO && asked && !asked->gpu,
         "--schedule is of the cuda target; it does not go with the cpu target"},
        {o->summary + o->format + (o->emit != EMIT_PROGRAM) > 1, "choose one of --emit, --summary and --format"},
        {o->shards && o->schedule == SCHEDULE_PERSISTENT,
         "--schedule persistent keeps all steps in one launch; with --shards, sums over the shards come between: leave "
         "one of them out"},
        {scaling && o->schedule == SCHEDULE_PERSISTENT,
         "--emit=scaling is of steps in shards, which --schedule persistent does not have: leave it out"},
        {scaling && asked && !asked->gpu, "--emit=scaling is of GPUs; it does not go with the cpu target"},
        {scaling && o->precision == 1 + PRECISION_INT8, "--emit=scaling is of training, and int8 trains nothing"},
        {o->link && !scaling, "--link says what joins GPUs, for --emit=scaling"},
        {o->shards == 1, "--shards 1 is a batch that is computed whole: leave it out"},
        {o->shard_optimizer && !o->shards && !scaling,
         "--shard-optimizer is of processes that share a batch: it goes with --shards"},
        {o->shard_optimizer && o->predict_only,
         "--shard-optimizer is of programs that train, and --predict-only leaves the prediction alone"},
        {o->predict_only && !o->shared, "--predict-only goes with --shared"},
        {o->predict_only && ((asked && asked->gpu) || o->arch || o->schedule != SCHEDULE_AUTO),
         "--predict-only makes libraries for the cpu target; mtc --shared makes one for GPUs, with the C interface of "
         "mtc.h"},
        {lacks_int8(o), "--precision int8 does not go with --real f64"},
        {o->predict_only && (o->standalone || o->real == REAL_F64),
         "--predict-only does not go with --standalone or --real f64"},
        {o->embed && !o->predict_only, "--embed goes with --predict-only"},
        {o->recompute && o->no_recompute, "choose one of --recompute and --no-recompute"},
        {o->in_place && !o->format, "--in-place goes with --format"},
        {o->check && !o->format, "--check goes with --format"},
        {o->json && !o->operators, "--json goes with --operators"},
        {o->in_place && o->input && strcmp(o->input, "/dev/stdin") == 0, "--in-place needs a file, not standard input"},
        {o->in_place && o->check, "choose one of --in-place and --check"},
        {o->emit == EMIT_PROGRAM && !o->plot && !o->tokens && !o->weights && o->output && strcmp(o->output, "-") == 0,
         "-o - is standard output, where no program goes: -o NAME; --emit=cu and --emit=c print its source"},
        {o->summary && o->output, "--summary prints, and makes no program; it does not take --output"},
        {o->format && o->output, "--format prints, or rewrites the file with --in-place; it does not take --output"},
    };
    return rules_hold(rules, sizeof rules / sizeof *rules, diag);
}

int options_parse(Options *options, Diag *diag, int argc, char **argv) {
    *options = (Options){0};
    bool good = parse_words(options, diag, argc, argv);
    options->keep = options->keep ? options->keep : "build";
    if (options->gradcheck) {
        options->target = 1 + TARGET_cpu;
        options->real = REAL_F64;
    }
    good = good && command_holds(options, diag) & combinations_hold(options, diag);
    if (options->output && strcmp(options->output, "-") == 0)
        options->output = "/dev/stdout";
    return good ? EXIT_SUCCESS : EXIT_USAGE;
}

/* ---- as they were given ---- */

static void put_choice(const Flag *flag, int value, Text *out) {
    const char *name = flag->argument;
    for (int skipped = flag->bound; skipped < value; skipped++)
        name += strcspn(name, "|") + 1;
    text_printf(out, " %s %.*s", flag->name, (int)strcspn(name, "|"), name);
}

static void put_flag(const Options *options, const Flag *flag, Text *out) {
    const void *field = (const char *)options + flag->field;
    if (flag->kind == FLAG_SWITCH && *(const bool *)field)
        text_printf(out, " %s", flag->name);
    else if (flag->kind == FLAG_CHOICE && *(const int *)field)
        put_choice(flag, *(const int *)field, out);
    else if (flag->kind == FLAG_NUMBER && *(const int *)field)
        text_printf(out, " %s %d", flag->name, *(const int *)field);
    else if (flag->kind == FLAG_STRING && *(const char *const *)field)
        text_printf(out, " %s %s", flag->name, *(const char *const *)field);
    for (int i = 0; flag->kind == FLAG_SETTING && i < options->settings.count; i++)
        text_printf(out, " %s %s=%s", flag->name, options->settings.at[i].name, options->settings.at[i].value);
}

static bool decides_program(const Flag *flag) {
    return flag->group == MODEL || flag->field == offsetof(Options, arch) || flag->field == offsetof(Options, real);
}

const char *options_command(const Options *options, Arena *arena) {
    Text out = TEXT(arena);
    text_puts(&out, options->gradcheck ? "mtc gradcheck" : "mtc");
    for (const Flag *flag = flags; flag < flags + FLAGS; flag++)
        if (decides_program(flag) && !(flag->field == offsetof(Options, real) && options->gradcheck))
            put_flag(options, flag, &out);
    return text_string(&out);
}

int options_settings(const Options *options, Arena *arena, const char *const **settings) {
    VEC(const char *) list = {0};
    for (const Flag *flag = flags; flag < flags + FLAGS; flag++) {
        Text out = TEXT(arena);
        if (decides_program(flag) && flag->kind != FLAG_SETTING)
            put_flag(options, flag, &out);
        if (out.length)
            VEC_PUSH(arena, &list, text_string(&out) + 1);
    }
    for (int i = 0; i < options->settings.count; i++)
        VEC_PUSH(arena, &list,
                 arena_printf(arena, "--set %s=%s", options->settings.at[i].name, options->settings.at[i].value));
    *settings = list.at;
    return list.count;
}
