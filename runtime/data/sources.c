/* Which source reads an origin: the rows of sources.def. A source's functions are in the file that its row names. */
#include "data/source.h"

#include <string.h>

static const struct {
    const char *format;
    const MtcSource *source;
} sources[] = {
#define SOURCE(format) {#format, &mtc_source_##format},
#include "data/sources.def"
#undef SOURCE
};

static int open_unknown(MtcFault *fault, MtcReading *reading, MtcOpened *opened) {
    (void)reading;
    return mtc_fail(fault, MTC_INTERNAL, "there is no source of examples '%s'", opened->origin->format);
}

static const MtcSource unknown = {.open = open_unknown};

const MtcSource *mtc_source_of(const MtcOrigin *origin) {
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        if (strcmp(sources[i].format, origin->format) == 0)
            return sources[i].source;
    return &unknown;
}

const MtcSource *mtc_training_source(const MtcModel *model) {
    const MtcSplit *split = mtc_split(model, "train");
    return split ? mtc_source_of(&model->origin[split->origin]) : &unknown;
}

int mtc_find_source(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, int path, const char *folder,
                    char **found) {
    return (mtc_source_of(origin)->folders ? mtc_find_folder : mtc_find_data)(fault, model->source, folder,
                                                                              origin->path[path], found);
}

int mtc_vocabulary_of(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, MtcVocabulary *vocabulary) {
    return mtc_vocabulary_at(fault, model, mtc_training_source(model)->level, encoding, vocabulary);
}
