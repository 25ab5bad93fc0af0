/* A session whose training data stay on the host goes on from a checkpoint of another seed: `other_seed FILE OUT` trains five
 * steps from FILE, after one of its own, and saves to OUT. */
#include "session/session.h"

#include <stdio.h>

int main(int argc, char **argv) {
    MtcSession *session;
    int code = argc == 3 ? mtc_create(&mtc_model, 1, 0, &session) : MTC_USAGE;
    if (!code) {
        session->data_on = MTC_DATA_ON_HOST;
        code = mtc_load_data(session, 0, NULL);
    }
    if (!code)
        code = mtc_train(session, 1, NULL);
    if (!code)
        code = mtc_resume(session, argv[1]);
    if (!code)
        code = mtc_train(session, 5, NULL);
    if (!code)
        code = mtc_save(session, argv[2]);
    if (code && argc == 3)
        fprintf(stderr, "%s\n", mtc_error(session));
    if (argc == 3)
        mtc_destroy(session);
    return code;
}
