#include "flags.h"
#include "support/text.h"

enum { HELP_COLUMN = 26, HELP_WIDTH = 100 };

/* Breaks `words` into lines between HELP_COLUMN and HELP_WIDTH; the first begins at `column`. */
static void wrapped(Text *out, const char *words, int column) {
    int at = column;
    if (at >= HELP_COLUMN) {
        text_putc(out, '\n');
        at = 0;
    }
    while (*words) {
        int length = (int)strcspn(words, " ");
        if (at > HELP_COLUMN && at + 1 + length > HELP_WIDTH) {
            text_putc(out, '\n');
            at = 0;
        }
        int space = at < HELP_COLUMN ? HELP_COLUMN - at : 1;
        text_printf(out, "%*s%.*s", space, "", length, words);
        at += space + length;
        words += length + (words[length] == ' ');
    }
    text_putc(out, '\n');
}

static const char COMPILE_USAGE[] =
    "usage: mtc MODEL.mt [-o PROGRAM] [OPTION]...\n"
    "       mtc plot LOG... [-o FILE.svg|FILE.png] [--x step|epoch|seconds] [--title TEXT]\n"
    "       mtc explain MODEL.mt [NAME] [OPTION]...\n"
    "       mtc gradcheck MODEL.mt [--set NAME=VALUE]... [FLAG]...\n"
    "       mtc tokens TEXT... --tokenizer tokenizer.json -o train.bin\n"
    "       mtc weights MODEL.pt -o MODEL.safetensors [--key NAME] [--rename FILE]\n"
    "       mtc import MODEL.onnx [-o MODEL.mt] [--set AXIS=SIZE]... [--force] [--flat]\n"
    "\n"
    "Compiles a description of a neural network and its training into one native program. The model\n"
    "file - is standard input. 'mtc plot' draws the curves of trainings, from their logs. 'mtc explain'\n"
    "says how the lines of a model became kernels. 'mtc gradcheck' compares its gradients with\n"
    "finite differences. 'mtc tokens' writes texts as tokens, 'mtc weights' weights of PyTorch as\n"
    "safetensors. 'mtc import' makes a model of an ONNX file.\n";
static const char EXPLAIN_USAGE[] =
    "usage: mtc explain MODEL.mt [NAME] [OPTION]...\n"
    "\n"
    "Says in words how each line of the model became kernels: what was fused with what and why not\n"
    "further, what it costs in arithmetic and memory traffic, what the plan does with memory. NAME is a\n"
    "value, a weight, a kernel or the number of a line, of which all is said. --target, --precision and\n"
    "the like are as when a program is made; without --target it is cuda.\n";
static const char GRADCHECK_USAGE[] =
    "usage: mtc gradcheck MODEL.mt [OPTION]... [FLAG]...\n"
    "\n"
    "Compares the gradient of each weight with finite differences of the loss, computed in double on the\n"
    "CPU, with the initial weights and one batch: of the training data where they are at hand, else of\n"
    "random numbers. Prints a table; exits with 65 where they differ. FLAGs are those of the program:\n"
    "--samples N elements of each tensor, --seed N, --data FOLDER, params of the model.\n";
static const char PLOT_USAGE[] =
    "usage: mtc plot LOG... [-o FILE.svg|FILE.png] [OPTION]...\n"
    "\n"
    "Draws the logs that programs write with --log, all in one picture: a panel for the loss and one\n"
    "for each metric; of each run a thin line within epochs, and a line by epoch of each set of\n"
    "examples. The legend tells the params in which the runs differ. --output is curves.svg unless given;\n"
    "a name that ends in .png makes a PNG.\n";

static const char TOKENS_USAGE[] =
    "usage: mtc tokens TEXT... --tokenizer FILE -o FILE.bin\n"
    "       mtc tokens TEXT... --learn N -o tokenizer.json\n"
    "\n"
    "Writes the tokens of the texts, one text behind the other, as a file that tokens(\"FILE.bin\") in a model\n"
    "reads: 16 bits a token where the tokenizer has no more numbers, else 32. --learn makes the tokenizer:\n"
    "its merges are the pairs that the texts have most often.\n";

static const char WEIGHTS_USAGE[] =
    "usage: mtc weights FILE.pt -o FILE.safetensors [--key NAME] [--rename FILE]\n"
    "\n"
    "Writes the tensors of a file of torch.save, a state dict or a checkpoint that holds one, as a file that\n"
    "--load and --init-from of programs read. Nothing of the file is run, and PyTorch is not needed. Rules\n"
    "give other names: in 'layers.*.fc -> h.*.linear' each * stands for any characters; the first that\n"
    "matches decides, and one without a replacement leaves tensors out.\n";

static const char IMPORT_USAGE[] =
    "usage: mtc import MODEL.onnx [-o MODEL.mt] [OPTION]...\n"
    "\n"
    "Makes a model of an ONNX file: its text, with data and train blocks to be edited, and its weights\n"
    "beside it, MODEL.safetensors. --set AXIS=SIZE says how large an axis is that has a name and no size\n"
    "in the file, but for the batch.\n";

/* What the help of a command says before its flags, and behind them. */
typedef struct Help {
    const char *usage, *rest;
} Help;
static const Help helps[COMMANDS] =
    {[COMMAND_PLOT] = {PLOT_USAGE, "\nExample: mtc plot lr-0.1.jsonl lr-0.01.jsonl --x epoch -o curves.svg\n"},
     [COMMAND_EXPLAIN] = {EXPLAIN_USAGE, "\nExample: mtc explain models/mnist.mt logits --target cpu\n"},
     [COMMAND_GRADCHECK] = {GRADCHECK_USAGE, "\nExample: mtc gradcheck models/mnist.mt --set hidden=16 --samples 20\n"},
     [COMMAND_TOKENS] = {TOKENS_USAGE, "\nExample: mtc tokens part-*.txt --tokenizer tokenizer.json -o train.bin\n"},
     [COMMAND_WEIGHTS] = {WEIGHTS_USAGE, "\nExample: mtc weights resnet18.pth -o resnet18.safetensors\n"},
     [COMMAND_IMPORT] = {IMPORT_USAGE, "\nExample: mtc import resnet18.onnx && mtc resnet18.mt && ./resnet18 predict "
                                       "--load resnet18.safetensors --input images.npy\n"}},
                  compile_help = {
                      COMPILE_USAGE,
                      "\n"
                      "Environment: CUDA_HOME, CC, MTC_HOME (kernels and runtime), XDG_CACHE_HOME, NO_COLOR.\n"
                      "Examples:    mtc models/mnist.mt -o mnist_train && ./mnist_train --epochs 10 --log run.jsonl\n"
                      "             mtc plot run.jsonl -o curves.svg\n"};

/* What everybody has is listed where all is. */
static bool is_helped(const Command *command, const Flag *flag) {
    return !command || (command->takes ? command->takes(flag) : flag->group == command->group);
}

void options_help(const Options *options, Text *out) {
    const Command *command = command_of(options);
    const Help *help = command ? &helps[command - commands] : &compile_help;
    text_puts(out, help->usage);
    const char *group = NULL;
    for (const Flag *flag = flags; flag < flags + FLAGS; flag++) {
        if (!is_helped(command, flag))
            continue;
        if (flag->group != group)
            text_printf(out, "\n%s:\n", flag->group);
        group = flag->group;
        size_t start = out->length;
        if (flag->letter)
            text_printf(out, "  -%c, %s", flag->letter, flag->name);
        else
            text_printf(out, "      %s", flag->name);
        if (flag->argument)
            text_printf(out, " %s", flag->argument);
        wrapped(out, flag->help, (int)(out->length - start));
    }
    text_puts(out, help->rest);
}

void options_list(Text *out) {
    for (const Flag *flag = flags; flag < flags + FLAGS; flag++) {
        char letter[] = {flag->letter ? '-' : '\0', flag->letter, '\0'};
        text_printf(out, "%s\t%s\t%s\t%s\t%s\n", flag->name, letter, flag->argument ? flag->argument : "", flag->group,
                    flag->help);
    }
}
