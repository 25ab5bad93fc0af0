#include "emit/build/target.h"

const Target targets[TARGETS] = {
#define TARGET(name_, ending_, gpu_, doubles_, dialect_, compiler_)                                                    \
    {.name = #name_,                                                                                                   \
     .ending = #ending_,                                                                                               \
     .gpu = (gpu_),                                                                                                    \
     .doubles = (doubles_),                                                                                            \
     .dialect = &(dialect_),                                                                                           \
     .compiler = &(compiler_)},
#include "emit/build/targets.def"
#undef TARGET
};
