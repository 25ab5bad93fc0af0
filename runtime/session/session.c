#include "session/session.h"

int mtc_device_fault(MtcSession *session, const char *error, const char *what) {
    if (!error)
        return 0;
    if (error == session->fault.text) /* no error of the device: a feed's examples cannot be had */
        return session->fault.code;
    return mtc_fail(&session->fault, MTC_UNAVAILABLE, "%s: %s: %s", session->device.name, what, error);
}

void mtc_note_ways(MtcSession *session, const char *flags) {
    mtc_note(&session->fault, "%s",
             session->program ? flags : "its weights alone can be loaded, to begin a training anew with them");
}

int mtc_enter(MtcSession *session) {
    if (session->failed)
        return session->failed; /* and the fault says why */
    return mtc_device_fault(session, mtc_device_choose(session->device_index), "choosing the device");
}

int mtc_enter_idle(MtcSession *session) {
    if (session->busy)
        return mtc_fail(&session->fault, MTC_USAGE,
                        "training is running: its functions may evaluate, predict, read and save, and nothing else");
    return mtc_enter(session);
}

const char *mtc_error(const MtcSession *session) {
    return session ? session->fault.text : "out of memory";
}
