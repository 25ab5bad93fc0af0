/* The grammar. Statements end at the end of their line (grammar_lex leaves out the line ends that end nothing); blocks
 * hold any statements, and check.c says which belong where. After an error the rest of the line is skipped, but the
 * block that begins on it is read, so that its closing brace is not taken for another's. */
%code requires {
#include "front/parse.h"
}

%code {
int grammar_lex(GRAMMAR_STYPE *value, Span *place, Parser *parser);
static void grammar_error(const Span *at, Parser *parser, const char *message);

/* From the first symbol to the last; of nothing: the end of what came before. */
#define YYLLOC_DEFAULT(current, rhs, n)                                                                                \
    ((current) = (n) ? span_join(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n))                                                   \
                     : (Span){YYRHSLOC(rhs, 0).source, YYRHSLOC(rhs, 0).end, YYRHSLOC(rhs, 0).end})

enum { MAX_STACK = 10000 };
#define YYMAXDEPTH MAX_STACK

static const char *comment_after(Parser *parser, Span span);

#define PUSH(list, item) VEC_PUSH(parser->arena, &(list), item)
#define NAMED(at, word) ((Name){(word), (at)})
#define OPERATOR(at, op_at, op, a, b) expr_operator(parser->arena, at, NAMED(op_at, op), a, b)
#define LEAF(kind, at) expr_new(parser->arena, kind, at)
}

%define api.pure full
%define api.prefix {grammar_}
%define api.token.prefix {T_}
%define api.value.type union
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%parse-param { Parser *parser }
%lex-param { Parser *parser }
%initial-action { @$ = (Span){parser->source, 0, 0}; }

%token YYEOF 0 "end of file"
%token NEWLINE "end of line"
%token <Name> NAME "a name" STRING "a string"
%token <Number> NUMBER "a number"
%token PARAM "param" INCLUDE "include" FN "fn" DATA "data" MODEL "model" TRAIN "train"
%token LAYER "layer" REPEAT "repeat" IN "in" IF "if" ELSE "else" ASSERT "assert" RETURN "return"
%token TRUE "true" FALSE "false" NONE "none"
%token DOTDOT ".." LE "<=" GE ">=" EQ "==" NE "!=" AND "and" OR "or" NOT "not"

%left OR
%left AND
%precedence NOT
%nonassoc '<' '>' LE GE EQ NE
%left '+' '-'
%left '*' '/' '%'
%precedence UNARY
%right '^'
%precedence '['

%nterm <Name> name keyword
%nterm <Number> signed
%nterm <Param> range
%nterm <Expr *> expr source place range_end
%nterm <NameList> single names
%nterm <ExprList> exprs dims places
%nterm <Arg> arg
%nterm <ArgList> arguments args
%nterm <Stmt *> stmt assign_or_field field_type if
%nterm <StmtList> block lines else
%nterm <FnParam> fn_param
%nterm <FnParamList> parameters fn_params

%%

file: %empty
    | file NEWLINE
    | file item NEWLINE
    | file error NEWLINE
    | file error block NEWLINE
    ;

item: PARAM name '=' signed range {
        $range.name = $name, $range.span = @$;
        $range.help = comment_after(parser, @$);
        $range.value = $signed.value, $range.integer = $signed.integer, $range.value_span = @signed;
        ast_param(parser->ast, $range);
      }
    | INCLUDE STRING                        { parser_include(parser, $STRING, @$); }
    | FN name parameters block              { ast_fn(parser->ast, span_join(@1, @parameters), $name, $3, $block); }
    | keyword block                         { ast_block(parser->ast, @$, $keyword, $block); }
    ;

keyword: DATA                               { $$ = NAMED(@$, "data"); }
    | MODEL                                 { $$ = NAMED(@$, "model"); }
    | TRAIN                                 { $$ = NAMED(@$, "train"); }
    ;

range: %empty                               { $$ = (Param){0}; }
    | IN signed[low] DOTDOT signed[high]    { $$ = (Param){.has_range = true, .low = $low.value, .high = $high.value}; }
    ;

signed: NUMBER
    | '-' NUMBER                            { $$ = (Number){-$NUMBER.value, $NUMBER.integer}; }
    ;

parameters: '(' ')'                         { $$ = (FnParamList){0}; }
    | '(' fn_params ')'                     { $$ = $2; }
    | '(' fn_params ',' ')'                 { $$ = $2; }
    ;

fn_params: fn_param                         { $$ = (FnParamList){0}; PUSH($$, $fn_param); }
    | fn_params[list] ',' fn_param          { $$ = $list; PUSH($$, $fn_param); }
    ;

fn_param: name                              { $$ = (FnParam){.name = $name}; }
    | name '=' expr                         { $$ = (FnParam){.name = $name, .value = $expr}; }
    | name dims                             { $$ = (FnParam){.name = $name, .has_shape = true, .shape = $dims}; }
    ;

block: '{' lines '}'                        { $$ = $lines; }
    | '{' lines stmt '}'                    { $$ = $lines; PUSH($$, $stmt); }
    | '{' lines error '}'                   { $$ = $lines; }
    ;

lines: %empty                               { $$ = (StmtList){0}; }
    | lines[list] NEWLINE                   { $$ = $list; }
    | lines[list] stmt NEWLINE              { $$ = $list; PUSH($$, $stmt); }
    | lines[list] error NEWLINE             { $$ = $list; }
    | lines[list] error block NEWLINE       { $$ = $list; }
    ;

stmt: assign_or_field
    | if
    | REPEAT name IN expr[first] DOTDOT expr[end] block {
        $$ = stmt_repeat(parser->arena, @$, $name, $first, $end, $block);
      }
    | LAYER name parameters '=' expr        { $$ = stmt_layer(parser->arena, @$, $name, $parameters, $expr); }
    | ASSERT expr                           { $$ = stmt_value(parser->arena, STMT_ASSERT, @$, $expr, NULL); }
    | ASSERT expr ':' STRING {
        Expr *message = expr_named(parser->arena, EXPR_STRING, @STRING, $STRING);
        $$ = stmt_value(parser->arena, STMT_ASSERT, @$, $expr, message);
      }
    | RETURN exprs {
        Expr *values = expr_several(parser->arena, @exprs, $exprs);
        $$ = stmt_value(parser->arena, STMT_RETURN, @$, values, NULL);
      }
    ;

assign_or_field: single '=' expr            { $$ = stmt_names(parser->arena, @$, $single, $expr); }
    | single '=' expr IN name[manner]       { $$ = stmt_in(parser->arena, @$, $single, $expr, $manner); }
    | names '=' exprs {
        $$ = stmt_names(parser->arena, @$, $names, expr_several(parser->arena, @exprs, $exprs));
      }
    | names '=' expr IN name[manner]        { $$ = stmt_in(parser->arena, @$, $names, $expr, $manner); }
    | name ':' field_type[type] source      { $$ = $type; field_from($$, @$, $1, $source); }
    ;

single: name                                { $$ = (NameList){0}; PUSH($$, $name); }
    ;

names: single ',' name                      { $$ = $single; PUSH($$, $name); }
    | names[list] ',' name                  { $$ = $list; PUSH($$, $name); }
    ;

field_type: name                            { $$ = stmt_field(parser->arena, $1, (ExprList){0}, (ExprList){0}); }
    | name dims                             { $$ = stmt_field(parser->arena, $1, $dims, (ExprList){0}); }
    | name dims[classes] dims[shape]        { $$ = stmt_field(parser->arena, $1, $classes, $shape); }
    ;

source: %empty                              { $$ = NULL; }
    | '=' expr                              { $$ = $expr; }
    ;

if: IF expr block else                      { $$ = stmt_if(parser->arena, @$, $expr, $block, $else); }
    | IF error block else                   { $$ = stmt_new(parser->arena, STMT_IF, @$); }
    ;

else: %empty                                { $$ = (StmtList){0}; }
    | ELSE block                            { $$ = $block; }
    | ELSE if                               { $$ = (StmtList){0}; PUSH($$, $if); }
    ;

dims: '[' exprs ']'                         { $$ = $exprs; }
    | '[' exprs ',' ']'                     { $$ = $exprs; }
    ;

exprs: expr                                 { $$ = (ExprList){0}; PUSH($$, $expr); }
    | exprs[list] ',' expr                  { $$ = $list; PUSH($$, $expr); }
    ;

expr: NUMBER                                { $$ = expr_number(parser->arena, @$, $1.value, $1.integer); }
    | STRING                                { $$ = expr_named(parser->arena, EXPR_STRING, @$, $1); }
    | TRUE                                  { $$ = LEAF(EXPR_BOOL, @$); $$->number = 1; }
    | FALSE                                 { $$ = LEAF(EXPR_BOOL, @$); }
    | NONE                                  { $$ = LEAF(EXPR_NONE, @$); }
    | name                                  { $$ = expr_named(parser->arena, EXPR_NAME, @$, $1); }
    | name arguments                        { $$ = expr_call(parser->arena, @$, $1, $2); }
    | '[' ']'                               { $$ = LEAF(EXPR_LIST, @$); }
    | dims                                  { $$ = expr_list(parser->arena, @$, $1); }
    | expr[whole] '[' places optional_comma ']' { $$ = expr_index(parser->arena, @$, $whole, $places); }
    | '(' expr[inner] ')'                   { $$ = $inner; $$->span = @$; }
    | '-' expr[a] %prec UNARY               { $$ = OPERATOR(@$, @1, "neg", $a, NULL); }
    | NOT expr[a]                           { $$ = OPERATOR(@$, @1, "not", $a, NULL); }
    | expr[a] '+' expr[b]                   { $$ = OPERATOR(@$, @2, "add", $a, $b); }
    | expr[a] '-' expr[b]                   { $$ = OPERATOR(@$, @2, "sub", $a, $b); }
    | expr[a] '*' expr[b]                   { $$ = OPERATOR(@$, @2, "mul", $a, $b); }
    | expr[a] '/' expr[b]                   { $$ = OPERATOR(@$, @2, "div", $a, $b); }
    | expr[a] '%' expr[b]                   { $$ = OPERATOR(@$, @2, "mod", $a, $b); }
    | expr[a] '^' expr[b]                   { $$ = OPERATOR(@$, @2, "pow", $a, $b); }
    | expr[a] '<' expr[b]                   { $$ = OPERATOR(@$, @2, "lt", $a, $b); }
    | expr[a] '>' expr[b]                   { $$ = OPERATOR(@$, @2, "gt", $a, $b); }
    | expr[a] LE expr[b]                    { $$ = OPERATOR(@$, @2, "le", $a, $b); }
    | expr[a] GE expr[b]                    { $$ = OPERATOR(@$, @2, "ge", $a, $b); }
    | expr[a] EQ expr[b]                    { $$ = OPERATOR(@$, @2, "eq", $a, $b); }
    | expr[a] NE expr[b]                    { $$ = OPERATOR(@$, @2, "ne", $a, $b); }
    | expr[a] AND expr[b]                   { $$ = OPERATOR(@$, @2, "and", $a, $b); }
    | expr[a] OR expr[b]                    { $$ = OPERATOR(@$, @2, "or", $a, $b); }
    ;

optional_comma: %empty
    | ','
    ;

places: place                               { $$ = (ExprList){0}; PUSH($$, $place); }
    | places[list] ',' place                { $$ = $list; PUSH($$, $place); }
    ;

place: expr
    | range_end[begin] ':' range_end[end]   { $$ = expr_range(parser->arena, @$, $begin, $end); }
    ;

range_end: %empty                           { $$ = NULL; }
    | expr
    ;

arguments: '(' ')'                          { $$ = (ArgList){0}; }
    | '(' args ')'                          { $$ = $2; }
    | '(' args ',' ')'                      { $$ = $2; }
    ;

args: arg                                   { $$ = (ArgList){0}; PUSH($$, $arg); }
    | args[list] ',' arg                    { $$ = $list; PUSH($$, $arg); }
    ;

arg: expr                                   { $$ = (Arg){.value = $expr}; }
    | name '=' expr                         { $$ = (Arg){.name = $name, .value = $expr}; }
    ;

/* These are keywords only where an item or a statement begins. */
name: NAME
    | PARAM                                 { $$ = NAMED(@$, "param"); }
    | INCLUDE                               { $$ = NAMED(@$, "include"); }
    | LAYER                                 { $$ = NAMED(@$, "layer"); }
    | keyword
    ;

%%

/* Bison calls this only when its stack is full. */
static void grammar_error(const Span *at, Parser *parser, const char *message) {
    (void)message;
    diag_error(parser->diag, *at, "this is nested too deeply");
}

static int yyreport_syntax_error(const yypcontext_t *context, Parser *parser) {
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    int count = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    if (count < 0)
        return count;
    for (int i = 0; i < count; i++)
        names[i] = yysymbol_name(kinds[i]);
    syntax_error(parser, *yypcontext_location(context), names, count);
    return 0;
}

/* The comment at the end of the line, without its sign; it says what a param is for. */
static const char *comment_after(Parser *parser, Span span) {
    const char *at = span.source->text + span.end;
    at += strspn(at, " \t");
    if (*at != '#')
        return NULL;
    at += strspn(at, "# \t");
    size_t length = strcspn(at, "\r\n");
    while (length && (at[length - 1] == ' ' || at[length - 1] == '\t'))
        length--;
    return length ? arena_strndup(parser->arena, at, length) : NULL;
}

void parse_source(Diag *diag, Ast *ast, Loader *loader, const Source *source) {
    Parser parser = {.diag = diag, .arena = ast->arena, .ast = ast, .loader = loader, .source = source};
    VEC_PUSH(ast->arena, &ast->sources, source);
    lexer_open(&parser);
    grammar_parse(&parser);
    lexer_close(&parser);
}
