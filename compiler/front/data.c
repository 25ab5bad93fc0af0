/* The data block as tables of the module: fields, the origins of examples, and the splits cut from them. */
#include "front/data.h"

#include <float.h>
#include <math.h>

static int64_t elements_of(const Field *field) {
    return type_elements(&field->type) / field->type.dim[0];
}

/* What a row of the data has of the field: all, or its part of a window. */
static int64_t row_elements(const Field *field) {
    return elements_of(field) / (field->steps ? field->steps : 1);
}

static int row_rank(const Field *field) {
    return field->type.rank - 1 - (field->steps && field->type.rank > 1);
}

/* class[V][L]: classes that are numbers in the files, never words. */
static bool is_sequence(const Field *field) {
    return field->kind == FIELD_CLASS && row_rank(field) > 0;
}

static bool eval_number(Frame *frame, Expr *e, double *number) {
    Value value = e->kind == EXPR_NUMBER ? value_number(e->number) : eval(frame, e); /* most of a table is literals */
    value_fix(frame->l->module, &value);
    *number = value.number;
    if (value.kind != VALUE_NUMBER && value.kind != VALUE_ERROR)
        diag_error(frame->l->diag, e->span, "expected a number, not %s", value_kind_text(frame->l->arena, &value));
    return value.kind == VALUE_NUMBER;
}

/* Whether an element of the field can have that value; reports. */
static bool holds(Lowering *l, const Field *field, Span at, double value) {
    static const struct {
        double low, high;
    } ranges[] = {[DT_F32] = {-FLT_MAX, FLT_MAX}, [DT_U8] = {0, UINT8_MAX}, [DT_I32] = {INT32_MIN, INT32_MAX}};
    bool class = field->kind == FIELD_CLASS, whole = field->stored != DT_F32;
    double low = class ? 0 : ranges[field->stored].low, high = class ? field->classes - 1 : ranges[field->stored].high;
    if (value >= low && value <= high && (!whole || value == floor(value)))
        return true;
    Text text = TEXT(l->arena);
    text_printf(&text, "%s '%s' is a %snumber from ", class ? "class" : "field", field->name, whole ? "whole " : "");
    text_printf(&text, whole ? "%.0f to %.0f, not " : "%g to %g, not ", low, high);
    text_number(&text, value);
    diag_error(l->diag, at, "%s", text_string(&text));
    return false;
}

/* ---- types of fields ---- */

static bool field_shape(Lowering *l, Frame *frame, const Stmt *s, const ExprList *dims, Type *type) {
    type->rank = dims->count + 1;
    for (int i = 0; i < dims->count; i++)
        if (!eval_whole(frame, dims->at[i], 1, INT32_MAX, &type->dim[i + 1]))
            return false;
    if (type_fits(type))
        return true;
    diag_error(l->diag, s->span, "field '%s' is too large", s->name.text);
    return false;
}

static bool field_type(Lowering *l, Frame *frame, const Stmt *s, Field *field) {
    field->type = (Type){.rank = 1, .dim = {l->module->batch}, .batched = true};
    if (strcmp(s->type.text, "class") == 0) {
        int64_t classes;
        if (!eval_whole(frame, s->dims.at[0], 2, 1 << 24, &classes))
            return false;
        field->kind = FIELD_CLASS;
        field->classes = (int)classes;
        field->stored = classes <= UINT8_MAX + 1                          ? DT_U8
                        : classes <= UINT16_MAX + 1 && s->shape.count > 0 ? DT_U16
                                                                          : DT_I32;
        field->type.dtype = DT_I32;
        return field_shape(l, frame, s, &s->shape, &field->type);
    }
    dtype_from_name(s->type.text, &field->stored);
    field->type.dtype = field->stored;
    return field_shape(l, frame, s, &s->dims, &field->type);
}

/* ---- columns of fields ---- */

/* What `missing = "..."` can say of a field; any other string is a word that stands in. */
static void missing_word(Lowering *l, const Field *field, const Expr *e, Columns *columns) {
    static const char *const names[] = {"error", "skip", "mean"};
    static const Missing meaning[] = {MISSING_ERROR, MISSING_SKIP, MISSING_MEAN};
    bool words = field->kind == FIELD_CLASS && !is_sequence(field) && columns->part == PART_VALUE;
    bool has_mean = field->kind != FIELD_CLASS && field->stored == DT_F32;
    for (int i = 0; i < COUNT(names); i++)
        if (strcmp(e->name.text, names[i]) == 0) {
            columns->missing = meaning[i];
            if (meaning[i] == MISSING_SKIP && field->steps)
                diag_error(l->diag, e->span,
                           "a row that is left out tears the windows that it is in: let something "
                           "stand in, missing = 0 or \"mean\"");
            if (meaning[i] == MISSING_MEAN && !has_mean)
                diag_error(l->diag, e->span, "'%s' has no mean: only an f32 field can have \"mean\"", field->name);
            return;
        }
    columns->missing = MISSING_VALUE;
    columns->missing_text = e->name.text;
    if (!words)
        report_unknown(l->diag, l->arena, "value of missing", (Name){e->name.text, e->span}, names,
                       has_mean ? COUNT(names) : COUNT(names) - 1);
}

static void add_missing(Frame *frame, const Field *field, Expr *e, Columns *columns) {
    if (!e)
        return;
    if (e->kind == EXPR_STRING) {
        missing_word(frame->l, field, e, columns);
    } else if (eval_number(frame, e, &columns->missing_value)) {
        columns->missing = MISSING_VALUE;
        holds(frame->l, field, e->span, columns->missing_value);
    }
}

static void add_unseen(Lowering *l, const Field *field, const Expr *e, Columns *columns) {
    if (!e)
        return;
    columns->unseen_other = strcmp(e->name.text, "other") == 0;
    if (field->kind != FIELD_CLASS)
        diag_error(l->diag, e->span, "'unseen' is of words, and '%s' is no class field", field->name);
    else if (is_sequence(field))
        diag_error(l->diag, e->span, "'unseen' is of words, and the classes of '%s' are numbers", field->name);
}

static void check_date(Lowering *l, const Stmt *s, const Field *field, const FieldSourceDef *source) {
    const char *part = s->value->name.text;
    if (field->kind == FIELD_CLASS && field->classes != source->values)
        diag_error(l->diag, s->value->span, "'%s' has %d values: %s : class[%d]", part, source->values, field->name,
                   source->values);
    else if (field->stored == DT_U8 && field->kind == FIELD_ARRAY && source->values > UINT8_MAX)
        diag_error(l->diag, s->value->span, "'%s' goes up to %d, u8 only to 255; make '%s' f32 or i32", part,
                   source->values, field->name);
}

static void name_columns(Lowering *l, const Stmt *s, Columns *columns) {
    const Expr *name = s->value ? bound_argument(s->value, "name") : NULL;
    const Expr *names = s->value ? bound_argument(s->value, "names") : NULL;
    if (!names)
        VEC_PUSH(l->arena, &columns->names, name ? name->name.text : s->name.text);
    for (int i = 0; names && i < names->args.count; i++)
        VEC_PUSH(l->arena, &columns->names, names->args.at[i].value->name.text);
}

/* One column, or one for each element. */
static bool count_columns(Lowering *l, const Stmt *s, const Field *field) {
    int64_t elements = row_elements(field);
    int count = field->columns.names.count;
    const char *of = field->steps ? "a row of " : "";
    Span type = {s->span.source, s->type.span.begin, s->span.end};
    if (count == elements)
        return true;
    if (!s->value)
        diag_error(l->diag, s->span,
                   "%s'%s' has %lld elements; say which columns they are: %s : %s = columns(\"a\", ...)", of,
                   field->name, (long long)elements, field->name, span_text(l->arena, type));
    else if (bound_argument(s->value, "name"))
        diag_error(l->diag, s->value->span, "'%s' is one number, and %s'%s' has %lld elements%s", s->value->name.text,
                   of, field->name, (long long)elements,
                   field_source_find(s->value->name.text)->part == PART_VALUE ? "; columns(\"a\", \"b\") are several"
                                                                              : "");
    else if (field->kind == FIELD_CLASS && !is_sequence(field))
        diag_error(l->diag, s->value->span, "class '%s' is one column, this is %d", field->name, count);
    else
        diag_error(l->diag, s->value->span, "%d column%s for the %lld element%s of %s'%s'; each has its own", count,
                   count == 1 ? "" : "s", (long long)elements, elements == 1 ? "" : "s", of, field->name);
    return false;
}

static void add_columns(Lowering *l, Frame *frame, const Stmt *s, Field *field) {
    const FieldSourceDef *source = s->value ? field_source_find(s->value->name.text) : NULL;
    Columns *columns = &field->columns;
    name_columns(l, s, columns);
    if (!count_columns(l, s, field) || !source)
        return;
    const Expr *format = bound_argument(s->value, "format");
    columns->part = source->part;
    if (source->part != PART_VALUE) {
        columns->date_format = format ? format->name.text : "%Y-%m-%d";
        check_date(l, s, field, source);
    }
    add_missing(frame, field, bound_argument(s->value, "missing"), columns);
    add_unseen(l, field, bound_argument(s->value, "unseen"), columns);
}

static bool has_named_columns(const Stmt *s) {
    return s->kind == STMT_ASSIGN && s->value->kind == EXPR_CALL && source_find(s->value->name.text)->columns;
}

/* The rows that the field has of a window: its first axis. They lie behind those of the field before, unless the text says where. */
static void add_steps(Lowering *l, Frame *frame, const Stmt *s, Field *field) {
    const Field *before = l->module->fields.count ? &l->module->fields.at[l->module->fields.count - 1] : NULL;
    Expr *from = s->value ? bound_argument(s->value, "from") : NULL;
    field->steps = field->type.rank > 1 ? field->type.dim[1] : 1;
    field->from = before ? before->from + before->steps : 0;
    if (from)
        eval_whole(frame, from, 0, INT32_MAX, &field->from);
}

static void refuse_from(Lowering *l, const Stmt *s) {
    const Expr *from = s->value ? bound_argument(s->value, "from") : NULL;
    if (from)
        diag_error(l->diag, from->span,
                   "'from' is a row of a window, and an example is one row here; a stride makes windows: "
                   "examples = csv(\"file\", stride = 1)");
}

static void add_fields(Lowering *l, Frame *frame, const Block *data) {
    const bool series = series_of(data) != NULL;
    bool columns = false;
    for (int i = 0; i < data->body.count; i++)
        columns = columns || has_named_columns(data->body.at[i]);
    for (int i = 0; i < data->body.count; i++) {
        const Stmt *s = data->body.at[i];
        Field field = {.name = s->name.text, .src = s->span};
        if (s->kind != STMT_FIELD || !field_type(l, frame, s, &field))
            continue;
        if (series)
            add_steps(l, frame, s, &field);
        else
            refuse_from(l, s);
        if (columns)
            add_columns(l, frame, s, &field);
        VEC_PUSH(l->arena, &l->module->fields, field);
    }
}

/* ---- rows written in the text ---- */

static void add_row(Lowering *l, Frame *frame, Origin *origin, const Expr *row) {
    int64_t elements = 0;
    int at = 0;
    for (int i = 0; i < l->module->fields.count; i++)
        elements += elements_of(&l->module->fields.at[i]);
    if (row->args.count != elements) {
        diag_error(l->diag, row->span, "row %lld has %d number%s, and the fields of an example have %lld element%s",
                   (long long)origin->row_count + 1, row->args.count, row->args.count == 1 ? "" : "s",
                   (long long)elements, elements == 1 ? "" : "s");
        return;
    }
    for (int i = 0; i < l->module->fields.count; i++) {
        const Field *field = &l->module->fields.at[i];
        for (int64_t k = elements_of(field); k > 0; k--, at++) {
            double value;
            if (eval_number(frame, row->args.at[at].value, &value) &&
                holds(l, field, row->args.at[at].value->span, value))
                VEC_PUSH(l->arena, &origin->rows, value);
        }
    }
}

static void add_rows(Lowering *l, Frame *frame, Origin *origin, const Expr *rows) {
    for (int i = 0; i < rows->args.count && !diag_full(l->diag); i++) {
        add_row(l, frame, origin, rows->args.at[i].value);
        origin->row_count++;
    }
}

/* ---- origins ---- */

static void push_strings(Arena *arena, const Expr *list, Origin *origin) {
    for (int i = 0; i < list->args.count; i++)
        VEC_PUSH(arena, &origin->columns, list->args.at[i].value->name.text);
}

/* The files of CIFAR-10, as they are published. */
static void add_cifar(Arena *arena, const Expr *call, Origin *origin) {
    enum { TRAINING_FILES = 5 };
    const char *folder = bound_argument(call, "folder")->name.text;
    bool test = strcmp(bound_argument(call, "part")->name.text, "test") == 0;
    if (test)
        VEC_PUSH(arena, &origin->paths, arena_printf(arena, "%s/test_batch.bin", folder));
    for (int i = 1; !test && i <= TRAINING_FILES; i++)
        VEC_PUSH(arena, &origin->paths, arena_printf(arena, "%s/data_batch_%d.bin", folder, i));
}

static void add_paths(Arena *arena, const Expr *call, Origin *origin) {
    const Expr *path = bound_argument(call, "path"), *paths = bound_argument(call, "paths");
    const Expr *tokenizer = bound_argument(call, "tokenizer");
    if (path)
        VEC_PUSH(arena, &origin->paths, path->name.text);
    if (tokenizer)
        VEC_PUSH(arena, &origin->paths, tokenizer->name.text);
    for (int i = 0; paths && i < paths->args.count; i++)
        VEC_PUSH(arena, &origin->paths, paths->args.at[i].value->name.text);
}

/* Every column that a field names is one of those that the file is said to have. */
static void check_columns_exist(Lowering *l, const Stmt *s, const Field *field, const Stmt *table,
                                const Origin *origin) {
    for (int i = 0; i < field->columns.names.count; i++) {
        const char *name = field->columns.names.at[i];
        if (origin->columns.count == 0 || is_one_of(origin->columns.at, origin->columns.count, name))
            continue;
        const Expr *names = s->value ? bound_argument(s->value, "names") : NULL;
        const Expr *written = names ? names->args.at[i].value : s->value ? bound_argument(s->value, "name") : NULL;
        diag_error(l->diag, written ? written->span : s->name.span, "'%s' has no column '%s'%s", table->name.text, name,
                   suggestion(l->arena, name, origin->columns.at, origin->columns.count));
        diag_note(l->diag, origin->src, "its columns are %s",
                  name_list(l->arena, origin->columns.at, origin->columns.count));
    }
}

static void add_table(Lowering *l, const Stmt *s, const SourceDef *source, Origin *origin) {
    const Expr *call = s->value;
    const Block *data = ast_find_block(l->ast, "data");
    const Expr *header = bound_argument(call, "header"), *columns = bound_argument(call, "columns");
    const Expr *separator = bound_argument(call, "separator"), *quote = bound_argument(call, "quote");
    origin->header = header ? header->number != 0 : !columns;
    origin->separator = separator ? *separator->name.text : source->separator;
    origin->quote = quote ? *quote->name.text : source->quote;
    if (!columns)
        return;
    push_strings(l->arena, columns, origin);
    for (int i = 0; i < l->module->fields.count; i++) {
        const Field *field = &l->module->fields.at[i];
        check_columns_exist(l, block_find(data, field->name), field, s, origin);
    }
}

/* ---- fields of images ---- */

static bool is_image(const Field *field) {
    const Type *type = &field->type;
    bool channels = type->rank == 4 && (type->dim[1] == 1 || type->dim[1] == 3);
    return field->kind == FIELD_ARRAY && field->stored == DT_U8 && (type->rank == 3 || channels);
}

static bool is_cifar_image(const Field *field) {
    const Type *type = &field->type;
    return is_image(field) && type->rank == 4 && type->dim[1] == 3 && type->dim[2] == 32 && type->dim[3] == 32;
}

static void no_image(Lowering *l, const Stmt *s, const Field *field, bool cifar) {
    diag_error(l->diag, field->src,
               cifar ? "the images of CIFAR-10 are u8[3, 32, 32]: %s : u8[3, 32, 32]"
                     : "'%s' is no image: u8[3, height, width], u8[1, height, width] or u8[height, width]",
               field->name);
    diag_note(l->diag, s->value->span, "'%s' reads images", s->value->name.text);
}

/* One image, and at most one class. */
static void check_image_fields(Lowering *l, const Stmt *s, bool cifar) {
    int images = 0, classes = 0;
    for (int i = 0; i < l->module->fields.count; i++) {
        const Field *field = &l->module->fields.at[i];
        if (field->kind == FIELD_CLASS) {
            if (classes++)
                diag_error(l->diag, field->src, "an image has one class, and '%s' is a second", field->name);
            else if (cifar && field->classes < 10)
                diag_error(l->diag, field->src, "CIFAR-10 has 10 classes: %s : class[10]", field->name);
        } else if (images++)
            diag_error(l->diag, field->src, "'%s' reads one image for each example, and '%s' is a second field",
                       s->value->name.text, field->name);
        else if (!(cifar ? is_cifar_image : is_image)(field))
            no_image(l, s, field, cifar);
    }
    if (!images)
        diag_error(l->diag, s->value->span, "'%s' reads images, and no field is one: image : u8[3, 32, 32]",
                   s->value->name.text);
}

static void add_images(Lowering *l, const Stmt *s, Origin *origin) {
    const Expr *resize = bound_argument(s->value, "resize");
    bool cifar = bound_argument(s->value, "part") != NULL;
    check_image_fields(l, s, cifar);
    origin->resize = resize && resize->number != 0;
    if (cifar)
        add_cifar(l->arena, s->value, origin);
    else
        VEC_PUSH(l->arena, &origin->paths, bound_argument(s->value, "folder")->name.text);
}

/* ---- windows of a text ---- */

static void check_window_field(Lowering *l, const Stmt *s, const char *format) {
    const Field *field = &l->module->fields.at[0];
    if (l->module->fields.count > 1)
        diag_error(l->diag, l->module->fields.at[1].src,
                   "'%s' reads windows of tokens: one field, and '%s' is a second", s->value->name.text,
                   l->module->fields.at[1].name);
    else if (field->kind != FIELD_CLASS || field->type.rank != 2)
        diag_error(l->diag, field->src, "'%s' reads windows of tokens, and '%s' is none: %s : class[256][129]",
                   s->value->name.text, field->name, field->name);
    else if (strcmp(format, "bytes") == 0 && field->classes != UINT8_MAX + 1)
        diag_error(l->diag, field->src, "there are 256 bytes: %s : class[256][%lld]", field->name,
                   (long long)field->type.dim[1]);
    else
        return;
    diag_note(l->diag, s->value->span, "'%s' is read here", s->name.text);
}

/* Byte pairs need one, and nothing else has a use for it. */
static void check_tokenizer(Lowering *l, const Stmt *s, const char *format) {
    const Expr *tokenizer = bound_argument(s->value, "tokenizer"), *level = bound_argument(s->value, "level");
    bool pieces = strcmp(format, "pieces") == 0;
    if (pieces && !tokenizer)
        diag_error(
            l->diag, level->span,
            "byte pairs are those of a tokenizer: tokenizer = \"tokenizer.json\"; 'mtc tokens --learn 8192 %s -o "
            "tokenizer.json' makes one",
            bound_argument(s->value, "path")->name.text);
    if (tokenizer && !pieces)
        diag_error(l->diag, tokenizer->span, "a tokenizer is for level = \"bpe\"; here tokens are %s", format);
}

/* Neighbouring windows share one token, the last of the one and the first of the other, unless the text says else. */
static void add_windows(Lowering *l, Frame *frame, const Stmt *s, Origin *origin) {
    int errors = diag_errors(l->diag);
    Expr *stride = bound_argument(s->value, "stride");
    check_tokenizer(l, s, origin->format);
    check_window_field(l, s, origin->format);
    if (diag_errors(l->diag) > errors)
        return;
    int64_t length = l->module->fields.at[0].type.dim[1];
    origin->stride = length > 1 ? length - 1 : 1;
    if (stride)
        eval_whole(frame, stride, 1, INT32_MAX, &origin->stride);
    l->module->fields.at[0].windows = true;
}

/* Returns its row of the module's table. */
static int add_origin(Lowering *l, Frame *frame, const Stmt *s) {
    const SourceDef *source = source_find(s->value->name.text);
    const Expr *rows = bound_argument(s->value, "rows");
    Origin origin = {.format = source_format(s->value), .src = s->span};
    add_paths(l->arena, s->value, &origin);
    if (source->images)
        add_images(l, s, &origin);
    if (source->windows)
        add_windows(l, frame, s, &origin);
    else if (bound_argument(s->value, "stride"))
        eval_whole(frame, bound_argument(s->value, "stride"), 1, INT32_MAX, &origin.stride);
    if (rows)
        add_rows(l, frame, &origin, rows);
    if (source->columns)
        add_table(l, s, source, &origin);
    VEC_PUSH(l->arena, &l->module->origins, origin);
    return l->module->origins.count - 1;
}

/* ---- splits ---- */

static void add_split(Lowering *l, Split split) {
    VEC_PUSH(l->arena, &l->module->splits, split);
}

/* Fractions say shares of 1; these leave some of it over, or have more, and are taken as parts of their sum all the same. */
static void doubt_fractions(Lowering *l, const Stmt *split, const double *size, int parts, double sum) {
    for (int i = 0; i < parts; i++)
        if (size[i] >= 1)
            return;
    if (fabs(sum - 1) < 1e-6)
        return;
    diag_warning(
        l->diag, split->value->span,
        "these fractions add up to %g, and parts of a split are of their sum: the first is %.3g%% of the examples", sum,
        100 * size[0] / sum);
    if (parts == 2 && sum < 1)
        diag_note(l->diag, split->value->span, "three sets are split = %g / %g / %g, two split = %g / %g", size[0],
                  size[1], 1 - sum, size[0], 1 - size[0]);
    else
        diag_note(l->diag, split->value->span, "fractions that add up to 1 say themselves what each part is");
}

/* `80 / 20`, as percentages or in any other unit: parts of their sum. */
static void cut_examples(Lowering *l, Frame *frame, const Block *data, int origin) {
    const Stmt *split = data_setting(data, "split");
    ExprList parts = split_parts(l->arena, split->value);
    const char *last = data_setting(data, "test") ? "validation" : "test";
    const char *const names[] = {"train", parts.count == 3 ? "validation" : last, "test"};
    double size[COUNT(names)] = {0}, sum = 0, before = 0;
    for (int i = 0; i < parts.count; i++) {
        if (!eval_number(frame, parts.at[i], &size[i]))
            return;
        if (size[i] <= 0)
            diag_error(l->diag, parts.at[i]->span, "the %s part of the split is empty; each part is above 0", names[i]);
        sum += size[i];
    }
    doubt_fractions(l, split, size, parts.count, sum);
    for (int i = 0; i < parts.count; i++) {
        Split part = {.name = names[i], .origin = origin, .from = before / sum, .src = split->span};
        before += size[i];
        part.to = i + 1 < parts.count ? before / sum : 1;
        part.in_order = split->manner.text || series_of(data);
        add_split(l, part);
    }
}

void add_data(Lowering *l, Frame *frame) {
    const Block *data = ast_find_block(l->ast, "data");
    int errors = diag_errors(l->diag);
    add_fields(l, frame, data);
    for (int i = 0; i < data->body.count && diag_errors(l->diag) == errors; i++) {
        const Stmt *s = data->body.at[i];
        if (s->kind != STMT_ASSIGN || strcmp(s->name.text, "split") == 0)
            continue;
        int origin = add_origin(l, frame, s);
        if (strcmp(s->name.text, "examples") == 0)
            cut_examples(l, frame, data, origin);
        else
            add_split(l, (Split){.name = s->name.text, .origin = origin, .to = 1, .src = s->span});
    }
}
