/* The search: a state is how far the line is laid out, where its end stands, and what the brackets and groups that are open ask of
 * what follows. From each, the next lexeme stands beside the last one or begins a line; the state with the least charge goes on first. */
#include "emit/text/layout.h"

#include "support/diag.h"

enum { INDENT = 4, MOST_SCOPES = 96, KINDS = 32 };

/* Brackets, or a group of operands, that are open. */
typedef struct Scope {
    int indent;           /* of lines that begin in it */
    int start;            /* where what was begun last in it stands: further lines of that are indented from there */
    int call;             /* where an operand begins, whose brackets' lines are indented from there; or 0 */
    int question;         /* where the "?" stands; or 0 */
    int member;           /* where the first "." stands that began a line; or 0 */
    char bracket;         /* that is open; 0: none */
    bool broken;          /* a line began in it */
    bool apart;           /* what comes next in it begins a line */
    bool a_line_each;     /* its items do */
    bool whole;           /* no line begins in it */
    bool operand_whole;   /* nor in the operand that it has come to */
    bool operator_begins; /* the last operator began a line */
} Scope;

typedef struct State State;
struct State {
    const State *before; /* NULL: the first lexeme is all there is */
    State *next;         /* of its kind at the same lexeme */
    bool begins;         /* the last lexeme began a line, in this column */
    int started;
    int at;         /* the next lexeme */
    int column;     /* behind the last one */
    int line_depth; /* brackets around where the line began, and the fewest around a lexeme of it */
    int least_depth;
    int64_t charge;
    int order;
    int count;
    Scope scope[]; /* the innermost last */
};

typedef VEC(State *) States;

typedef struct Search {
    Arena *arena;
    const Lexemes *line;
    int first, most; /* columns */
    int made;
    States queue;
    State *(*seen)[KINDS]; /* by lexeme and kind */
    bool *reached;         /* the lexeme */
} Search;

static Scope *innermost(State *s) {
    return &s->scope[s->count - 1];
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

static bool is_choice(const Lexeme *lexeme) {
    return lexeme->kind == LEXEME_QUESTION || lexeme->kind == LEXEME_COLON;
}

static bool separates(const Lexeme *lexeme) {
    return lexeme->kind == LEXEME_COMMA || lexeme->kind == LEXEME_SEMICOLON;
}

/* ---- the next lexeme begins a line ---- */

static bool begins_choice(const Lexeme *lexeme) {
    return lexeme->groups && lexeme->group[lexeme->groups - 1] == BINDS_CHOICE;
}

static int line_column(const Search *search, const Scope *scope, const Lexeme *lexeme) {
    int continued = larger(scope->start, scope->indent) + INDENT;
    if (lexeme->kind == LEXEME_MEMBER)
        return scope->member ? scope->member : continued;
    if (lexeme->is_cast || (lexeme->kind == LEXEME_OPEN && *lexeme->text == '['))
        return continued;
    if (lexeme->kind == LEXEME_COLON && scope->question)
        return begins_choice(lexeme + 1) ? scope->indent - INDENT : scope->question;
    if (lexeme[-1].kind == LEXEME_COMMA && lexeme->depth == 0) /* names that are declared together */
        return search->first + INDENT;
    if (lexeme->names_function)
        return larger(scope->start, scope->indent);
    bool outside = scope->indent == search->first && !(lexeme[-1].kind == LEXEME_CLOSE && *lexeme[-1].text == '}');
    return outside ? continued : scope->indent;
}

static void begin_line(const Search *search, State *s, const Lexeme *lexeme) {
    enum { FIRST = 15 };
    Scope *scope = innermost(s);
    const Lexeme *last = lexeme - 1;
    s->charge += lexeme->charge + (scope->broken ? 0 : FIRST);
    scope->broken = true;
    s->column = line_column(search, scope, lexeme);
    if (lexeme->kind == LEXEME_MEMBER && !scope->member)
        scope->member = s->column;
    bool operand = separates(last) || last->kind == LEXEME_INFIX, opened = last->kind == LEXEME_OPEN;
    if (operand)
        scope->apart = false;
    else if (lexeme->kind != LEXEME_INFIX && !opened && last->kind != LEXEME_COLON)
        scope->apart = true;
    scope->start = s->column + (lexeme->kind == LEXEME_MEMBER ? lexeme->length : 0);
    s->line_depth = s->least_depth = lexeme->depth;
    for (int k = 0; k < s->count - 1; k++)
        s->scope[k].apart = true;
}

/* ---- it stands beside the last one ---- */

/* An operand behind an operator that does not begin a line has its lines not broken, but where it is one of two. */
static bool stays_whole(const Scope *scope, const Lexeme *operator) {
    bool binds = operator->kind == LEXEME_INFIX || operator->kind == LEXEME_COMMA;
    if (operator->kind == LEXEME_COLON)
        return !scope->operator_begins;
    bool pair = operator->index == 0 && operator->last;
    return binds && operator->binds != BINDS_ASSIGNMENT && operator->binds != BINDS_RELATION && !pair;
}

static bool has_operators(const Lexeme *lexeme) {
    for (int k = 0; k < lexeme->groups; k++)
        if (lexeme->group[k] != BINDS_NOTHING)
            return true;
    return false;
}

static bool is_word(const Lexeme *lexeme, const char *word) {
    return lexeme->length == (int)strlen(word) && strncmp(lexeme->text, word, strlen(word)) == 0;
}

/* What stands beside it is where lines of the lexeme are indented from. */
static bool starts(const Search *search, const Lexeme *lexeme) {
    const Lexeme *last = lexeme - 1;
    if (last->kind == LEXEME_OPEN)
        return last > search->line->at && (is_word(last - 1, "for") || is_word(last - 1, "if"));
    bool operates = last->kind == LEXEME_INFIX || is_choice(last);
    return last->kind == LEXEME_COMMA || (operates && (last->binds != BINDS_ASSIGNMENT || has_operators(lexeme)));
}

static void go_on(const Search *search, State *s, const Lexeme *lexeme) {
    Scope *scope = innermost(s);
    scope->operand_whole |= stays_whole(scope, lexeme - 1);
    s->column += lexeme->spaced;
    if (lexeme[-1].kind == LEXEME_OPEN)
        scope->indent = s->column;
    if (starts(search, lexeme))
        scope->start = s->column;
}

/* ---- the lexeme itself ---- */

static void open_group(State *s, const Lexeme *first, int binds, bool outermost, bool indents) {
    ENSURE(s->count < MOST_SCOPES);
    const Scope *around = innermost(s);
    const Lexeme *last = first - 1;
    Scope own = *around;
    own.broken = false;
    own.operator_begins = true;
    own.whole |= around->operand_whole;
    own.a_line_each &= binds <= BINDS_COMMA;
    if (!(s->at && is_word(last, "return") && binds == BINDS_NOTHING))
        own.indent = larger(larger(s->column, own.indent), around->start);
    if (binds > BINDS_NOTHING)
        own.start = larger(own.start, s->column);
    if (binds != BINDS_CHOICE && first->kind != LEXEME_PREFIX)
        own.call = s->column;
    bool chained = binds == BINDS_CHOICE && s->at && last->kind == LEXEME_COLON && outermost;
    if (!chained && (binds == BINDS_CHOICE || (indents && binds > BINDS_ASSIGNMENT)))
        own.indent += INDENT;
    if ((s->at && last->kind != LEXEME_OPEN) || binds != BINDS_COMMA)
        own.apart = false;
    s->scope[s->count++] = own;
}

static void open_groups(State *s, const Lexeme *first) {
    const Lexeme *last = first - 1;
    bool indents = !(s->at && (last->kind == LEXEME_OPEN || last->kind == LEXEME_SEMICOLON || is_word(last, "return") ||
                               last->binds == BINDS_ASSIGNMENT));
    for (int k = first->groups - 1; k >= 0; k--, indents = true)
        open_group(s, first, first->group[k], k == first->groups - 1, indents);
}

static void open_bracket(const Search *search, State *s, const Lexeme *open) {
    enum { LONG_LIST = 5 };
    ENSURE(s->count < MOST_SCOPES);
    const Scope *around = innermost(s);
    bool list = *open->text == '{', template = *open->text == '<' && around->bracket == '(';
    Scope own = {.indent = (list ? around->start : larger(around->start, around->call)) + INDENT,
                 .start = around->start};
    if (template) {
        own.indent = larger(own.indent, around->indent);
        own.start = larger(own.start, around->indent);
    }
    own.bracket = *open->text;
    own.whole = around->whole || around->operand_whole;
    own.a_line_each = list && open->items >= LONG_LIST && s->column + open->width > search->most;
    s->scope[s->count++] = own;
}

static void pass(const Search *search, State *s, const Lexeme *lexeme) {
    enum { TOO_LONG = 1000000 };
    Scope *scope = innermost(s);
    if (lexeme->kind == LEXEME_COMMA || lexeme->kind == LEXEME_INFIX)
        scope->operand_whole = false;
    if (lexeme->kind == LEXEME_INFIX || is_choice(lexeme))
        scope->operator_begins = s->begins;
    if (lexeme->kind == LEXEME_QUESTION)
        scope->question = s->column;
    if (lexeme->kind == LEXEME_MEMBER)
        scope->call = lexeme->last ? 0 : s->column;
    if (lexeme->kind != LEXEME_OPEN && lexeme->kind != LEXEME_CLOSE && lexeme->depth < s->least_depth)
        s->least_depth = lexeme->depth;
    open_groups(s, lexeme);
    if (lexeme->kind == LEXEME_CLOSE && s->count > 1)
        s->count--;
    if (lexeme->kind == LEXEME_OPEN)
        open_bracket(search, s, lexeme);
    for (int k = 0; k < lexeme->ends && s->count > 1; k++)
        s->count--;
    int end = s->column + lexeme->length, before = larger(s->column, search->most);
    s->column = end;
    s->charge += end > before ? (int64_t)TOO_LONG * (end - before) : 0;
    s->at++;
}

/* ---- which of the two ---- */

static bool may_begin(State *s, const Lexeme *lexeme) {
    const Scope *scope = innermost(s);
    const Lexeme *last = lexeme - 1;
    bool opened = last->kind == LEXEME_OPEN, list = opened && *last->text == '{';
    if (!lexeme->may_begin || scope->whole)
        return false;
    if (list && s->at > 1 && (last[-1].kind == LEXEME_OPEN || last[-1].kind == LEXEME_COMMA))
        return false;
    if (opened && !list && s->least_depth < s->line_depth && s->least_depth < lexeme->depth)
        return false;
    return lexeme->kind == LEXEME_INFIX || !scope->operand_whole;
}

/* Behind operands that were broken, the next one begins a line: what belongs together is seen. */
static bool must_begin(State *s, const Lexeme *lexeme) {
    const Scope *scope = innermost(s);
    const Lexeme *last = lexeme - 1;
    if (lexeme->kind == LEXEME_CLOSE)
        return false;
    if (last->kind == LEXEME_COMMA && scope->a_line_each)
        return true;
    if (!scope->apart)
        return false;
    bool compares = last->binds == BINDS_EQUAL || last->binds == BINDS_RELATION;
    bool operand =
        last->kind == LEXEME_INFIX && last->binds != BINDS_ASSIGNMENT && (!compares || last[-1].ends_operators);
    return separates(last) || is_choice(lexeme) || (operand && lexeme->kind != LEXEME_INFIX);
}

/* ---- searching ---- */

static bool goes_first(const State *a, const State *b) {
    return a->charge != b->charge ? a->charge < b->charge : a->order < b->order;
}

static void swap(States *queue, int a, int b) {
    State *kept = queue->at[a];
    queue->at[a] = queue->at[b];
    queue->at[b] = kept;
}

static void push(Search *search, State *s) {
    States *queue = &search->queue;
    s->order = search->made++;
    VEC_PUSH(search->arena, queue, s);
    for (int k = queue->count - 1; k > 0 && goes_first(queue->at[k], queue->at[(k - 1) / 2]); k = (k - 1) / 2)
        swap(queue, k, (k - 1) / 2);
}

static State *pop(States *queue) {
    State *first = queue->at[0];
    queue->at[0] = queue->at[--queue->count];
    for (int k = 0, least; 2 * k + 1 < queue->count; k = least) {
        least = 2 * k + 1;
        least += least + 1 < queue->count && goes_first(queue->at[least + 1], queue->at[least]);
        if (!goes_first(queue->at[least], queue->at[k]))
            break;
        swap(queue, k, least);
    }
    return first;
}

static bool same_scope(const Scope *a, const Scope *b) {
    return a->indent == b->indent && a->start == b->start && a->call == b->call && a->question == b->question &&
           a->member == b->member && a->bracket == b->bracket && a->broken == b->broken && a->apart == b->apart &&
           a->a_line_each == b->a_line_each && a->whole == b->whole && a->operand_whole == b->operand_whole &&
           a->operator_begins == b->operator_begins;
}

/* What follows costs the same behind both. */
static bool same_ahead(const State *a, const State *b) {
    bool same = a->column == b->column && a->line_depth == b->line_depth && a->least_depth == b->least_depth &&
                a->count == b->count;
    for (int k = 0; k < a->count && same; k++)
        same = same_scope(&a->scope[k], &b->scope[k]);
    return same;
}

static unsigned mixed(unsigned hash, int number) {
    return (hash ^ (unsigned)number) * 16777619u;
}

/* Equal for those that are the same ahead: a state is compared with few others. */
static unsigned kind_of(const State *s) {
    unsigned hash = mixed(mixed(mixed(s->count, s->column), s->line_depth), s->least_depth);
    for (const Scope *scope = s->scope; scope < s->scope + s->count; scope++) {
        hash = mixed(mixed(mixed(hash, scope->indent), scope->start), scope->call);
        hash = mixed(hash, scope->broken | scope->apart << 1 | scope->whole << 2 | scope->operand_whole << 3 |
                               scope->operator_begins << 4);
    }
    return (hash ^ hash >> 16) % KINDS;
}

/* Lines of which there would be too many ways are laid out by the first good one. */
static bool is_new(Search *search, State *s) {
    enum { MOST_STATES = 40000 };
    if (search->reached[s->at] && search->made > MOST_STATES)
        return false;
    State **kind = &search->seen[s->at][kind_of(s)];
    for (const State *other = *kind; other; other = other->next)
        if (same_ahead(s, other))
            return false;
    s->next = *kind;
    *kind = s;
    return search->reached[s->at] = true;
}

static State *copy_of(Arena *arena, const State *s, int more) {
    size_t bytes = sizeof *s + (size_t)s->count * sizeof *s->scope;
    State *copy = arena_alloc(arena, bytes + (size_t)more * sizeof *s->scope);
    memcpy(copy, s, bytes);
    return copy;
}

static void step(Search *search, const State *from, bool begins) {
    const Lexeme *lexeme = &search->line->at[from->at];
    State *s = copy_of(search->arena, from, lexeme->groups + 1);
    s->before = from;
    s->begins = begins;
    if (begins)
        begin_line(search, s, lexeme);
    else
        go_on(search, s, lexeme);
    s->started = s->column;
    pass(search, s, lexeme);
    push(search, s);
}

static State *first_state(Search *search) {
    const Lexeme *lexeme = search->line->at;
    State *s = arena_alloc(search->arena, sizeof *s + (size_t)(lexeme->groups + 2) * sizeof *s->scope);
    *s = (State){.begins = true, .started = search->first, .column = search->first, .count = 1};
    s->scope[0] = (Scope){.indent = search->first, .start = search->first};
    pass(search, s, lexeme);
    return s;
}

static const State *cheapest(Search *search) {
    push(search, first_state(search));
    for (;;) {
        State *s = pop(&search->queue);
        if (s->at == search->line->count)
            return s;
        if (!is_new(search, s))
            continue;
        const Lexeme *lexeme = &search->line->at[s->at];
        bool may = may_begin(s, lexeme);
        if (!may || !must_begin(s, lexeme))
            step(search, s, false);
        if (may)
            step(search, s, true);
    }
}

const LineStart *lay_out(Arena *arena, const Lexemes *line, int column, int most) {
    Arena *own = arena_new();
    Search search = {.arena = own,
                     .line = line,
                     .first = column,
                     .most = most,
                     .seen = arena_alloc(own, ((size_t)line->count + 1) * sizeof *search.seen),
                     .reached = NEW_ARRAY(own, bool, line->count + 1)};
    LineStart *starts_at = NEW_ARRAY(arena, LineStart, line->count);
    for (const State *s = cheapest(&search); s; s = s->before)
        starts_at[s->at - 1] = (LineStart){s->begins, s->started};
    arena_free(own);
    return starts_at;
}
