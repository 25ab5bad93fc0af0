/* A trained network in a program: the functions of a library that `mtc --shared --predict-only model.mt -o libnet.so` makes.
 *
 *     MtcNet *net;
 *     if (mtc_net_open("weights.safetensors", &net) || mtc_net_run(net, 1, inputs, outputs))
 *         fprintf(stderr, "%s\n", mtc_net_error());
 *     mtc_net_close(net);
 *
 * A net is used by one thread at a time; another one of the same weights, for another thread, is made by mtc_net_share, and all
 * that share them may run at once. Nothing is printed, no process is ended, no signal is handled, and no file stays open but a
 * descriptor of the weights' memory, until the last net that has them is closed.
 * C11 and C++; from other languages the functions are called as they stand here. */
#ifndef MTC_NET_H
#define MTC_NET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct MtcNet MtcNet;

/* An input or the output, of one example: so many elements, row-major. Lives as long as the net. */
typedef struct MtcNetArray {
    const char *name; /* of the field; of the output "prediction" */
    const char *type; /* "f32", "i32", "u16", "u8" */
    int32_t rank;
    int32_t classes; /* input: elements are numbers from 0 on below this; output: a score for each class; 0: neither */
    int64_t dim[8];
    int64_t elements; /* the product of dim; 1 of rank 0 */
} MtcNetArray;

/* The weights of a file of safetensors, a checkpoint of training or a state dict of the same names; NULL: those that the library
 * carries (--embed). Params are the checkpoint's too. Returns 0, or a code other than 0: *net is NULL then. */
int mtc_net_open(const char *weights, MtcNet **net);
/* Another net of the same weights, with memory of its own for what is computed. Either is closed first. */
int mtc_net_share(MtcNet *net, MtcNet **other);
void mtc_net_close(MtcNet *net); /* also of NULL */

/* Why the last call of this thread failed, in lines of text; "" where none has. Valid until its next call. */
const char *mtc_net_error(void);

int mtc_net_inputs(const MtcNet *net);
/* In the order of the fields of the model; NULL: there is none of that number, counted from 0. */
const MtcNetArray *mtc_net_input(const MtcNet *net, int number);
const MtcNetArray *mtc_net_output(const MtcNet *net);
/* The word that a class stands for, where a checkpoint knows words: of an input, or of the output (-1). NULL: it has none. */
const char *mtc_net_class(const MtcNet *net, int input, int64_t number);

/* inputs[i] has `examples` times input i, one behind the other; outputs gets as many times the output, as f32. The examples are computed in
 * batches of the size that the library was compiled with (--batch); a batch that is not full costs as much as a full one. Refused:
 * NULL, an address that is no multiple of the type's size, a class that is none, a net that another thread is running. */
int mtc_net_run(MtcNet *net, int64_t examples, const void *const *inputs, float *outputs);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
