/* Arrays of a caller (Python, the C interface) as data: where they lie, on the host or on the device, and whether their classes exist. */
#include "session/lent.h"

int mtc_visit_field(MtcSession *session, const void *field, size_t bytes, bool lent, MtcVisitBytes *visit, void *user) {
    return lent ? mtc_visit_memory(session, field, bytes, visit, user) : visit(session, user, field, 0, bytes);
}

static int visit_classes(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    const MtcField *field = (const MtcField *)user;
    const int64_t width = (int64_t)mtc_type_size(field->type), count = (int64_t)size / width;
    const int64_t bad = mtc_find_bad_class(field, bytes, count), at = (int64_t)from / width + bad;
    if (bad == count)
        return 0;
    return mtc_fail(&session->fault, MTC_BAD_DATA,
                    "field '%s' of example %lld is %lld: it has %d classes, numbered from 0 to %d", field->name,
                    (long long)(at / field->elements), (long long)mtc_class_at(field, bytes, bad), field->classes,
                    field->classes - 1);
}

static int visit_weights(MtcSession *session, void *user, const void *bytes, size_t from, size_t size) {
    const MtcField *field = (const MtcField *)user;
    const int64_t width = (int64_t)mtc_type_size(field->type), count = (int64_t)size / width;
    const int64_t bad = mtc_find_bad_weight(field, bytes, count);
    if (bad == count)
        return 0;
    return mtc_fail(&session->fault, MTC_BAD_DATA,
                    "field '%s' of example %lld is %s: it is the weight of its example, " MTC_A_WEIGHT, field->name,
                    (long long)((int64_t)from / width + bad), mtc_number(mtc_weight_at(field, bytes, bad)));
}

static int check_lent(MtcSession *session, const MtcField *field, const void *memory) {
    const char *wrong = mtc_device_reaches(memory, session->device_index);
    if (wrong)
        return mtc_fail(&session->fault, MTC_USAGE, "field '%s' is lent at %p, which is not on %s: %s", field->name,
                        memory, session->device.name, wrong);
    return (uintptr_t)memory % MTC_LENT_ALIGNMENT == 0
               ? 0
               : mtc_fail(&session->fault, MTC_USAGE, "field '%s' is lent at %p, which is no multiple of %d bytes",
                          field->name, memory, MTC_LENT_ALIGNMENT);
}

int mtc_check_lent(MtcSession *session, const void *const *fields, const bool *lent) {
    int code = 0;
    for (int i = 0; i < session->model->fields && fields && lent && !code; i++)
        if (fields[i] && lent[i])
            code = check_lent(session, &session->model->field[i], fields[i]);
    return code;
}

static int check_fields(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent,
                        bool classes, bool weights) {
    int code = 0;
    for (int i = 0; i < session->model->fields && fields && !code; i++) {
        const MtcField *field = &session->model->field[i];
        const size_t bytes = (size_t)examples * mtc_example_bytes(field);
        if (fields[i] && classes && field->classes)
            code = mtc_visit_field(session, fields[i], bytes, lent && lent[i], visit_classes, (void *)field);
        if (fields[i] && weights && field->weighs && !code)
            code = mtc_visit_field(session, fields[i], bytes, lent && lent[i], visit_weights, (void *)field);
    }
    return code;
}

int mtc_check_classes(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent) {
    return check_fields(session, examples, fields, lent, true, false);
}

int mtc_check_weights(MtcSession *session, int64_t examples, const void *const *fields, const bool *lent) {
    return check_fields(session, examples, fields, lent, false, true);
}
