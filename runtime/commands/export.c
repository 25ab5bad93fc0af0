/* export: the network that predicts, with its weights, as a file of ONNX. */
#include "onnx/export.h"
#include "commands/cli.h"

#include "base/file.h"

#include <stdio.h>

int mtc_command_export(MtcFault *fault, const MtcModel *model, const MtcOptions *options) {
    MtcSession *session = NULL;
    int code = options->output ? mtc_export_check(fault, model)
                               : mtc_fail(fault, MTC_USAGE, "--output FILE says where the network is written");
    if (!code)
        code = mtc_output_check(fault, options->output);
    if (!code)
        code = mtc_open_session(fault, model, options, NULL, NULL, &session);
    if (!code && (code = mtc_export(session, options->output)))
        *fault = session->fault;
    mtc_destroy(session);
    return code;
}
