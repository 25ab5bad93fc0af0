/* In front of what protoc-c writes: programs are not linked with libprotobuf-c, which export.c loads when it needs it, so that a
 * training needs it neither to be built nor to run. The functions of onnx.pb-c.c that call it are called by nobody. */
#ifndef MTC_ONNX_UNLINKED_H
#define MTC_ONNX_UNLINKED_H

#include <protobuf-c/protobuf-c.h>

#pragma weak protobuf_c_message_free_unpacked
#pragma weak protobuf_c_message_get_packed_size
#pragma weak protobuf_c_message_pack
#pragma weak protobuf_c_message_pack_to_buffer
#pragma weak protobuf_c_message_unpack

#endif
