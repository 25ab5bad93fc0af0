#include "commands/cli.h"

#include "base/ending.h"
#include "ranks/nccl.h"
#include "ranks/ranks.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- commands and flags: the tables that parsing, help and advice are made from ---- */

enum {
    CLI_TRAIN = 1,
    CLI_EVAL = 2,
    CLI_PREDICT = 4,
    CLI_INFO = 8,
    CLI_BENCH = 16,
    CLI_PROFILE = 32,
    CLI_GRADCHECK = 64,
    CLI_GENERATE = 128,
    CLI_EXPORT = 256,
    CLI_QUANTIZE = 512,
    CLI_RUNS = CLI_TRAIN | CLI_EVAL | CLI_PREDICT | CLI_GENERATE | CLI_BENCH | CLI_PROFILE | CLI_QUANTIZE,
    CLI_TOGETHER = CLI_TRAIN | CLI_EVAL | CLI_BENCH | CLI_PROFILE /* of several processes, all work */
};

static const struct Command {
    const char *name, *help;
    int bit;
    int needs; /* what a model must be able to, to have a use for it */
    bool needs_weights;
    int (*run)(MtcFault *fault, const MtcModel *model, const MtcOptions *options);
} command_table[] = {
    {"train", "train, and evaluate after each epoch (the default)", CLI_TRAIN, MTC_CAN_TRAIN, false, mtc_command_train},
    {"eval", "loss and metrics of trained weights over a data set", CLI_EVAL, MTC_CAN_EVALUATE, true, mtc_command_eval},
    {"predict", "the model's answer for each example", CLI_PREDICT, MTC_CAN_EVALUATE, true, mtc_command_predict},
    {"generate", "text that goes on from a prompt, by a language model", CLI_GENERATE, MTC_CAN_GENERATE, true,
     mtc_command_generate},
    {"export", "the network that predicts, with trained weights, as a file of ONNX", CLI_EXPORT, MTC_CAN_TRAIN, true,
     mtc_command_export},
    {"info", "what this program is; info FILE: what is in a checkpoint", CLI_INFO, 0, false, mtc_command_info},
    {"bench", "how fast a training step or a forward pass is, as a line of JSON", CLI_BENCH, MTC_CAN_EVALUATE, false,
     mtc_command_bench},
    {"profile", "how long each kernel of a training step takes, and what bounds it", CLI_PROFILE, MTC_CAN_TRAIN, false,
     mtc_command_profile},
    {"quantize", "weights of floats become those of this program, integers of 8 bits", CLI_QUANTIZE, MTC_CAN_QUANTIZE,
     true, mtc_command_quantize},
    {"gradcheck", "gradients against finite differences (programs of mtc gradcheck)", CLI_GRADCHECK, MTC_CAN_CHECK,
     false, mtc_command_gradcheck},
};
enum { CLI_COMMANDS = sizeof command_table / sizeof command_table[0] };

typedef enum FlagKind { FLAG_COUNT, FLAG_NUMBER, FLAG_TEXT, FLAG_LIST, FLAG_SWITCH } FlagKind;

static const struct Flag {
    const char *name, *argument, *help;
    int commands;
    FlagKind kind;
    size_t offset;     /* in MtcOptions */
    int64_t low, high; /* of a count; high 0: no bound */
} flag_table[] = {
#define FLAG(field, name, argument, kind, low, high, commands, help)                                                   \
    {name, argument, help, commands, FLAG_##kind, offsetof(MtcOptions, field), low, high},
#include "commands/flags.def"
};
enum { CLI_FLAGS = sizeof flag_table / sizeof flag_table[0] };

/* The letter that mtc has for a flag too; NULL: none. */
static const char *letter_of(const struct Flag *flag) {
    return flag->offset == offsetof(MtcOptions, output) ? "-o" : NULL;
}

/* ---- help ---- */

static void help_knob(const MtcKnob *knob) {
    char name[64];
    MtcText words = {NULL, 0, 0};
    snprintf(name, sizeof name, "--%s %s", knob->name, knob->integer ? "N" : "X");
    mtc_text_add(&words, "%s%s%.6g", knob->help ? knob->help : "", knob->help ? "; " : "", knob->value);
    if (knob->has_range)
        mtc_text_add(&words, ", from %g to %g", knob->low, knob->high);
    if (knob->bound)
        mtc_text_add(&words, "%s%s", knob->has_range ? "; " : ", ", knob->bound);
    mtc_help_row(name, words.at);
    free(words.at);
}

/* What only some models have a use for. */
static int ability_for(const struct Flag *flag) {
    static const struct {
        size_t offset;
        int needs;
    } rows[] = {
        {offsetof(MtcOptions, sample), MTC_CAN_GENERATE}, {offsetof(MtcOptions, sample_prompt), MTC_CAN_GENERATE},
        {offsetof(MtcOptions, monitor), MTC_CAN_WATCH},   {offsetof(MtcOptions, patience), MTC_CAN_WATCH},
        {offsetof(MtcOptions, resize), MTC_CAN_SEE},      {offsetof(MtcOptions, data), MTC_CAN_READ},
        {offsetof(MtcOptions, bad_rows), MTC_CAN_PARSE},  {offsetof(MtcOptions, no_cache), MTC_CAN_PARSE},
        {offsetof(MtcOptions, device), MTC_CAN_CHOOSE},   {offsetof(MtcOptions, data_on), MTC_CAN_CHOOSE},
        {offsetof(MtcOptions, gpus), MTC_CAN_CHOOSE},     {offsetof(MtcOptions, sums), MTC_CAN_CHOOSE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].offset == flag->offset)
            return rows[i].needs;
    return 0;
}

static void help_flag(const MtcModel *model, const struct Flag *flag) {
    char name[64];
    MtcText words = {NULL, 0, 0};
    const char *letter = letter_of(flag);
    snprintf(name, sizeof name, "%s%s--%s %s", letter ? letter : "", letter ? ", " : "", flag->name,
             flag->argument ? flag->argument : "");
    mtc_text_add(&words, "%s", flag->help);
    if (flag->offset == offsetof(MtcOptions, epochs))
        mtc_text_add(&words, "; %d", model->epochs);
    if (flag->offset == offsetof(MtcOptions, seed))
        mtc_text_add(&words, "; %llu", (unsigned long long)model->seed);
    mtc_help_row(name, words.at);
    free(words.at);
}

static void help_flags(const MtcModel *model, int command) {
    int abilities = mtc_abilities(model);
    if (command != CLI_INFO)
        printf("\nflags\n");
    for (int i = 0; i < CLI_FLAGS; i++)
        if ((flag_table[i].commands & command) && (ability_for(&flag_table[i]) & ~abilities) == 0)
            help_flag(model, &flag_table[i]);
    if (model->knobs && command != CLI_INFO)
        printf("\nparameters of %s\n", model->source);
    for (int i = 0; i < model->knobs && command != CLI_INFO; i++)
        help_knob(&model->knob[i]);
}

static int help(const MtcModel *model, const char *program, const struct Command *command, bool named) {
    printf("%s: %lld parameters, compiled by mtc from %s for %s\n\n", model->name, (long long)model->parameters,
           model->source, model->target);
    if (named)
        printf("usage: %s %s %s\n  %s\n", program, command->name, command->bit == CLI_INFO ? "[FILE]" : "[flags]",
               command->help);
    else
        printf("usage: %s [command] [flags]\n\ncommands\n", program);
    for (int i = 0; i < CLI_COMMANDS && !named; i++)
        if ((command_table[i].needs & ~mtc_abilities(model)) == 0)
            mtc_help_row(command_table[i].name, command_table[i].help);
    if (named || (command->needs & ~mtc_abilities(model)) == 0) /* the default may be one that the model lacks */
        help_flags(model, command->bit);
    if (!named) {
        mtc_help_examples(model, program);
        printf("\n%s COMMAND --help lists the flags of a command.\n", program);
    }
    return 0;
}

/* ---- parsing ---- */

typedef struct Parser {
    const MtcModel *model;
    MtcOptions *options;
    const struct Command *command;
    const char *given[CLI_FLAGS]; /* the value of each flag that was; "" of a switch */
    MtcFault fault;
} Parser;

static int usage_error(Parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int usage_error(Parser *parser, const char *format, ...) {
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mtc_fail(&parser->fault, MTC_USAGE, "%s", text);
    mtc_note(&parser->fault, "%s --help lists commands and flags", parser->options->program);
    return MTC_USAGE;
}

static int parse_count(Parser *parser, const struct Flag *flag, const char *text, int64_t *value) {
    char *end;
    int64_t high = flag->high ? flag->high : INT64_MAX;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (end == text || *end)
        return usage_error(parser, "--%s needs an integer, not '%s'", flag->name, text);
    if (errno || number < flag->low || number > high)
        return usage_error(parser, "--%s is from %lld to %lld, not %s", flag->name, (long long)flag->low,
                           (long long)high, text);
    *value = number;
    return 0;
}

static const char *decimal_comma(const char *text) {
    size_t digits = strspn(text, "-0123456789");
    return digits && text[digits] == ',' && !text[digits + 1 + strspn(text + digits + 1, "0123456789eE-+")]
               ? ": decimals come after a point"
               : "";
}

static int parse_real(Parser *parser, const struct Flag *flag, const char *text, double *value) {
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end || !isfinite(*value))
        return usage_error(parser, "--%s needs a number, not '%s'%s", flag->name, text, decimal_comma(text));
    return 0;
}

/* Twice the same is no question. */
static int given_twice(Parser *parser, const char *name, const char *first, const char *second) {
    return usage_error(parser, "--%s is given twice, as %s and as %s: which?", name, first, second);
}

static int parse_knob(Parser *parser, int index, const char *text) {
    const MtcKnob *knob = &parser->model->knob[index];
    char *end;
    double value = strtod(text, &end);
    if (!(parser->command->bit & (CLI_RUNS | CLI_GRADCHECK | CLI_EXPORT)))
        return usage_error(parser, "%s has no flag --%s", parser->command->name, knob->name);
    if (end == text || *end || !isfinite(value))
        return usage_error(parser, "--%s needs a number, not '%s'%s", knob->name, text, decimal_comma(text));
    if (!isfinite((float)value))
        return usage_error(parser, "--%s: %s is beyond f32, whose numbers end at %.2g", knob->name, text,
                           (double)FLT_MAX);
    if (knob->integer && value != floor(value))
        return usage_error(parser,
                           "--%s needs an integer, not %s (it is written without a fraction in the model file: write "
                           "%.1f there)",
                           knob->name, text, knob->value);
    if (knob->has_range && (value < knob->low || value > knob->high))
        return usage_error(parser, "--%s is from %g to %g, not %s", knob->name, knob->low, knob->high, text);
    if (knob->bound && !(value >= knob->least && value <= knob->most))
        return usage_error(parser, "--%s %s, not %s", knob->name, knob->bound, text);
    if (parser->options->knob_given[index] && parser->options->knob[index] != value)
        return given_twice(parser, knob->name, mtc_number(parser->options->knob[index]), text);
    parser->options->knob[index] = value;
    parser->options->knob_given[index] = true;
    return 0;
}

static int add_to_list(Parser *parser, const struct Flag *flag, const char *text, MtcList *list) {
    if (list->count == MTC_MAX_FIELDS)
        return usage_error(parser, "--%s may be given %d times at most", flag->name, MTC_MAX_FIELDS);
    list->at[list->count++] = text;
    return 0;
}

/* `why`: "'hidden' was fixed at 128 when this program was compiled". */
static int fixed_when_compiled(Parser *parser, const char *why, const char *flag, const char *value) {
    MtcText command = {NULL, 0, 0};
    mtc_remake(&command, parser->model, flag, value, parser->options->program);
    int code = usage_error(parser, "%s: %s", why, command.at);
    free(command.at);
    return code;
}

/* A flag of mtc. text: the value that came with it, or NULL. */
static int flag_of_mtc(Parser *parser, const char *name, const char *text) {
    char why[128], flag[64];
    const char *example = mtc_compiled_flag(name);
    if (strcmp(name, "batch") == 0)
        snprintf(why, sizeof why, "the batch was fixed at %lld when this program was compiled",
                 (long long)mtc_step_examples(parser->model));
    else
        snprintf(why, sizeof why, "--%s is a flag of mtc, for when a program is compiled", name);
    snprintf(flag, sizeof flag, "--%s", name);
    return fixed_when_compiled(parser, why, flag, !*example ? "" : text && *text && text[0] != '-' ? text : example);
}

static int fixed_param(Parser *parser, const MtcFixed *param, const char *text) {
    char why[160], setting[160];
    snprintf(why, sizeof why, "'%s' was fixed at %g when this program was compiled", param->name, param->value);
    snprintf(setting, sizeof setting, "%s=%s", param->name, text && *text ? text : "...");
    return fixed_when_compiled(parser, why, "--set", setting);
}

/* A flag of other commands. */
static int flag_elsewhere(Parser *parser, const struct Flag *flag, const char *text) {
    const char *advice = "";
    if (mtc_compiled_flag(flag->name))
        return flag_of_mtc(parser, flag->name, text);
    if (parser->command->bit == CLI_TRAIN && flag->offset == offsetof(MtcOptions, load))
        advice = ": --init-from FILE begins with its weights, --resume FILE goes on with its training";
    else if (parser->command->bit == CLI_TRAIN && flag->offset == offsetof(MtcOptions, steps))
        advice = ": --limit-steps N stops after N steps";
    return usage_error(parser, "%s has no flag --%s%s", parser->command->name, flag->name, advice);
}

static int parse_flag(Parser *parser, const struct Flag *flag, const char *text) {
    char *field = (char *)parser->options + flag->offset;
    if (!(flag->commands & parser->command->bit))
        return flag_elsewhere(parser, flag, text);
    if (ability_for(flag) & MTC_CAN_SEE & ~mtc_abilities(parser->model))
        return usage_error(parser, "--%s is for images, and %s predicts from none", flag->name, parser->model->name);
    const char **given = &parser->given[flag - flag_table];
    if (*given && flag->kind != FLAG_LIST && strcmp(*given, text) != 0)
        return given_twice(parser, flag->name, *given, text);
    *given = text;
    parser->options->epochs_given |= flag->offset == offsetof(MtcOptions, epochs);
    parser->options->seed_given |= flag->offset == offsetof(MtcOptions, seed);
    parser->options->split_given |= flag->offset == offsetof(MtcOptions, split);
    if (flag->kind == FLAG_COUNT)
        return parse_count(parser, flag, text, (int64_t *)(void *)field);
    if (flag->kind == FLAG_NUMBER)
        return parse_real(parser, flag, text, (double *)(void *)field);
    if (flag->kind != FLAG_SWITCH && !*text &&
        flag->offset != offsetof(MtcOptions, prompt)) /* a text may begin with nothing */
        return usage_error(parser, "--%s needs a value: --%s %s", flag->name, flag->name, flag->argument);
    if (flag->kind == FLAG_LIST)
        return add_to_list(parser, flag, text, (MtcList *)(void *)field);
    if (flag->kind == FLAG_TEXT)
        *(const char **)(void *)field = text;
    else
        *(bool *)field = true;
    return 0;
}

static void note_knobs(Parser *parser) {
    const MtcModel *model = parser->model;
    MtcText names = {NULL, 0, 0};
    for (int i = 0; i < model->knobs; i++)
        mtc_text_add(&names, "%s--%s", i ? ", " : "", model->knob[i].name);
    if (names.at)
        mtc_note(&parser->fault, "the parameters of %s are %s", model->source, names.at);
    free(names.at);
}

static int unknown_flag(Parser *parser, const char *name, const char *text) {
    const MtcModel *model = parser->model;
    const char *names[CLI_FLAGS + MTC_MAX_KNOBS];
    int count = 0;
    for (int i = 0; i < CLI_FLAGS; i++)
        if (flag_table[i].commands & parser->command->bit)
            names[count++] = flag_table[i].name;
    for (int i = 0; i < model->knobs; i++)
        names[count++] = model->knob[i].name;
    for (int i = 0; i < model->fixed; i++)
        if (strcmp(model->fixed_param[i].name, name) == 0)
            return fixed_param(parser, &model->fixed_param[i], text);
    const char *usual = mtc_usual_word(name), *nearest = mtc_nearest(name, names, count);
    for (int i = 0; usual && i < count; i++)
        if (strcmp(names[i], usual) == 0)
            nearest = usual;
    if (mtc_compiled_flag(name))
        return flag_of_mtc(parser, name, text);
    for (int i = 0; usual && usual != nearest && i < CLI_FLAGS; i++)
        if (strcmp(flag_table[i].name, usual) == 0)
            return flag_elsewhere(parser, &flag_table[i], text);
    if (nearest)
        return usage_error(parser, "unknown flag --%s; did you mean --%s?", name, nearest);
    usage_error(parser, "unknown flag --%s", name);
    note_knobs(parser);
    return MTC_USAGE;
}

/* A flag's value, unless what follows is the next flag: --save=--odd takes a file that is called so. Prompts and stops are any text. */
static const char *value_of(const struct Flag *flag, const char *text, bool after_equals) {
    const bool of_text = flag->offset == offsetof(MtcOptions, prompt) || flag->offset == offsetof(MtcOptions, stop);
    const bool any = after_equals || of_text;
    return text && !any && strncmp(text, "--", 2) == 0 ? NULL : text;
}

/* "--lr 3e-4" or "--lr=3e-4", whose word is "lr" or "lr=3e-4"; *used: how many arguments that took. */
static int parse_argument(Parser *parser, const char *word, char **argument, int left, int *used) {
    char name[64];
    const char *equals = strchr(word, '='), *text = equals ? equals + 1 : left > 1 ? argument[1] : NULL;
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word);
    *used = equals ? 1 : 2;
    for (int i = 0; i < CLI_FLAGS; i++)
        if (strcmp(flag_table[i].name, name) == 0) {
            if (flag_table[i].kind == FLAG_SWITCH) {
                *used = 1;
                return equals ? usage_error(parser, "--%s takes no value", name)
                              : parse_flag(parser, &flag_table[i], "");
            }
            text = value_of(&flag_table[i], text, equals);
            return text ? parse_flag(parser, &flag_table[i], text)
                        : usage_error(parser, "--%s needs a value: --%s %s", name, name, flag_table[i].argument);
        }
    for (int i = 0; i < parser->model->knobs; i++)
        if (strcmp(parser->model->knob[i].name, name) == 0)
            return text ? parse_knob(parser, i, text) : usage_error(parser, "--%s needs a number", name);
    return unknown_flag(parser, name, text);
}

/* A word that is no flag, and what it may be the value of. */
static int stray_word(Parser *parser, const char *word) {
    const char *flag = NULL, *bare = word + (word[0] == '-');
    if (mtc_ends_with(word, ".safetensors"))
        flag = parser->command->bit == CLI_TRAIN ? "resume" : "load";
    else if (parser->command->bit == CLI_PREDICT && word[0] != '-')
        flag = "input";
    if (flag)
        return usage_error(parser, "'%s' is no flag; did you mean --%s %s?", word, flag, word);
    if (strlen(bare) > 1 && isalpha((unsigned char)*bare) && (word[0] == '-' || strchr(word, '=')))
        return usage_error(parser, "'%s' is no flag: flags begin with two dashes, --%s", word, bare);
    return usage_error(parser, "'%s' is no flag: flags begin with --", word);
}

static int parse_command(Parser *parser, const char *name) {
    const char *names[CLI_COMMANDS];
    for (int i = 0; i < CLI_COMMANDS; i++) {
        names[i] = command_table[i].name;
        if (strcmp(name, command_table[i].name) == 0) {
            parser->command = &command_table[i];
            return 0;
        }
    }
    const char *usual = mtc_usual_command(name), *nearest = usual ? usual : mtc_nearest(name, names, CLI_COMMANDS);
    if (strchr(name, '=') || mtc_ends_with(name, ".safetensors"))
        return stray_word(parser, name);
    return nearest ? usage_error(parser, "unknown command '%s'; did you mean '%s'?", name, nearest)
                   : usage_error(parser, "unknown command '%s'", name);
}

/* The name of the flag that has a letter: "output" of "-o"; NULL: none has. */
static const char *flag_with_letter(const char *word) {
    for (int i = 0; i < CLI_FLAGS; i++) {
        const char *letter = letter_of(&flag_table[i]);
        if (letter && strcmp(letter, word) == 0)
            return flag_table[i].name;
    }
    return NULL;
}

static int parse_flags(Parser *parser, int argc, char **argv) {
    int code = 0, used = 0;
    for (int i = 0; i < argc && !code; i += used)
        if (strncmp(argv[i], "--", 2) == 0 && argv[i][2]) {
            code = parse_argument(parser, argv[i] + 2, argv + i, argc - i, &used);
        } else if (flag_with_letter(argv[i])) {
            code = parse_argument(parser, flag_with_letter(argv[i]), argv + i, argc - i, &used);
        } else if (parser->command->bit == CLI_INFO && argv[i][0] != '-' && !parser->options->file) {
            parser->options->file = argv[i];
            used = 1;
        } else {
            code = stray_word(parser, argv[i]);
        }
    if (!code && parser->command->needs_weights && !parser->options->load)
        code = usage_error(parser, "%s needs trained weights: --load FILE", parser->command->name);
    if (!code && parser->options->split_given && parser->options->input.count)
        code = usage_error(parser, "--split takes examples of the model's data, --input those of a file: which?");
    return code;
}

static void set_defaults(MtcOptions *options, const MtcModel *model, const char *program) {
    memset(options, 0, sizeof *options);
    options->started = mtc_seconds();
    options->program = program;
    options->epochs = model->epochs;
    options->seed = (int64_t)model->seed;
    options->device = -1;
    options->runs = 5;
    options->samples = 64;
    options->rank_timeout = 10;
    options->tokens = 200;
    options->calibrate = 512;
    options->temperature = options->top_p = options->repetition_penalty = 1;
    options->beams = 1;
    options->split = mtc_test_split(model) ? mtc_test_split(model) : "train";
}

static bool wants(int argc, char **argv, const char *flag) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], flag) == 0)
            return true;
    return false;
}

/* Weights are floats to train, or integers to compute with. */
static int check_precision(Parser *parser) {
    const MtcModel *model = parser->model;
    const bool trains = parser->command->needs & MTC_CAN_TRAIN, quantizes = parser->command->needs & MTC_CAN_QUANTIZE;
    MtcText command = {NULL, 0, 0};
    if (!(trains && model->quantized) && !(quantizes && !model->quantized))
        return 0;
    mtc_remake(&command, model, "--precision", trains ? "fp32" : "int8", parser->options->program);
    mtc_fail(&parser->fault, MTC_USAGE,
             trains ? "%s is for programs that train; this one computes in int8, with weights that another has trained"
                    : "%s is for programs that compute in int8; this one computes with weights of floats",
             parser->command->name);
    mtc_note(&parser->fault, "%s, under another name, makes one", command.at);
    free(command.at);
    return parser->fault.code;
}

static int run_command(Parser *parser, int argc, char **argv) {
    parser->options->exports = parser->command->bit == CLI_EXPORT;
    int code = check_precision(parser);
    if (!code)
        code = parse_flags(parser, argc, argv);
    if (!code)
        code = mtc_check_outputs(&parser->fault, parser->model, parser->options);
    return code ? code : parser->command->run(&parser->fault, parser->model, parser->options);
}

int mtc_main(const MtcModel *model, int argc, char **argv) {
    MtcOptions options;
    Parser parser;
    mtc_hold_standard_files();
    mtc_device_start(argv);
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is a fault of writing it */
    bool asks = argc > 1 && strcmp(argv[1], "help") == 0, named = !asks && argc > 1 && argv[1][0] != '-';
    set_defaults(&options, model, argv[0]);
    memset(&parser, 0, sizeof parser);
    parser.model = model;
    parser.options = &options;
    parser.command = &command_table[0];
    int code = named ? parse_command(&parser, argv[1]) : 0;
    const bool helps = asks || wants(argc, argv, "--help") || wants(argc, argv, "-h");
    if (!code && (helps || !(parser.command->bit & CLI_TOGETHER)) && mtc_ranks_place())
        return 0; /* rank 0 does it alone */
    if (!code && helps)
        help(model, argv[0], parser.command, named);
    else if (!code)
        code = run_command(&parser, argc - 1 - named, argv + 1 + named);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !code)
        code = mtc_fail(&parser.fault, MTC_IO, "cannot write the output: %s", strerror(errno));
    if (code && parser.fault.code && mtc_ranks_tell(code))
        fprintf(stderr, "%s: error: %s\n", argv[0], parser.fault.text);
    mtc_ranks_leave(code);
    if (mtc_nccl_lost())
        _exit(code);
    return code;
}
