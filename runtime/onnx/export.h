/* The network that predicts as a file of ONNX. mtc has written it into the program, but for the weights' numbers: those of the session
 * come into the initializers of their names, params into those whose text says "param NAME". */
#ifndef MTC_EXPORT_H
#define MTC_EXPORT_H

#include "session/session.h"

/* mtc links other values into a program: a ModelProto and its length, or why there is none, "m.mt:12: the prediction draws random
 * numbers". */
extern const char *mtc_network, *mtc_no_network;
extern unsigned long mtc_network_size;

/* A fault, before anything is read: the network could not be exported whatever its weights are. */
int mtc_export_check(MtcFault *fault, const MtcModel *model);

#endif
