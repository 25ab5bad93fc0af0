/* The files that a model brings in. It need not be right: a dump of its syntax may be wanted before it is. */
#include "front/ast.h"
#include "support/file.h"

/* A program looks for the paths of its model beside it, in $MTC_DATA_DIR and in the user's cache; with `--data .` in the working
 * folder. Words that are no paths, such as the separator of a table, name no file as a rule. */
static void add_data_file(Arena *arena, const char *model, const char *path, InputFiles *inputs) {
    static const char why[] = "it is data of the model";
    VEC_PUSH(arena, inputs, ((InputFile){path_in(arena, path_folder(arena, model), path), why}));
    VEC_PUSH(arena, inputs, ((InputFile){path, why}));
    const char *found = data_file(arena, model, path);
    if (found)
        VEC_PUSH(arena, inputs, ((InputFile){found, why}));
}

static void add_strings(const Ast *ast, const Expr *call, InputFiles *inputs) {
    for (int i = 0; i < call->args.count; i++) {
        const Expr *argument = call->args.at[i].value;
        if (argument->kind == EXPR_STRING)
            add_data_file(ast->arena, ast->sources.at[0]->path, argument->name.text, inputs);
    }
}

void front_inputs(const Ast *ast, InputFiles *inputs) {
    for (int i = 1; i < ast->sources.count; i++)
        VEC_PUSH(ast->arena, inputs, ((InputFile){ast->sources.at[i]->path, "the model includes it"}));
    for (int i = 0; i < ast->blocks.count; i++) {
        const Block *block = ast->blocks.at[i];
        for (int j = 0; strcmp(block->keyword.text, "data") == 0 && j < block->body.count; j++) {
            const Stmt *s = block->body.at[j];
            if (s->kind == STMT_ASSIGN && s->value->kind == EXPR_CALL)
                add_strings(ast, s->value, inputs);
        }
    }
}
