/* Sources of examples: what `train = csv("prices.csv")` in a model's data block may name. A source is a row of sources.def, and an
 * MtcSource in a file of this folder: what is done with the origins of that format, and what is to be known of them. */
#ifndef MTC_SOURCE_H
#define MTC_SOURCE_H

#include "data/part.h"
#include "data/vocabulary.h"

typedef struct MtcSource MtcSource;

/* An origin of examples, which is read once for all splits. */
typedef struct MtcOpened {
    const MtcSource *source; /* NULL: not opened yet */
    const MtcModel *model;
    const MtcOrigin *origin;
    const char *name;   /* of its file, for messages */
    MtcExamples arrays; /* all examples, of a source that has no `read` */
    void *kept;         /* the source's own */
} MtcOpened;

/* A text file of examples to predict, to be read as the training data are. */
typedef struct MtcAsked {
    const MtcSource *source;
    const MtcModel *model;
    const MtcOrigin *origin; /* of the training data */
    const char *path;
    const bool *wanted; /* of each field: does the prediction depend on it? */
} MtcAsked;

struct MtcSource {
    /* Finds the origin's files, and reads as much of them as says how many examples there are. After a fault nothing is kept. */
    int (*open)(MtcFault *fault, MtcReading *reading, MtcOpened *opened);
    /* What the training data decide about the meaning of the fields. NULL: nothing. */
    int (*learn)(MtcFault *fault, const MtcSplitPart *train, const MtcOpened *opened, MtcEncoding *encoding);
    /* The examples of a part. NULL: they are those of the arrays. */
    int (*read)(MtcFault *fault, const MtcSplitPart *part, const MtcEncoding *encoding, MtcReading *reading,
                MtcOpened *opened, MtcExamples *examples);
    /* Frees what is kept. */
    void (*close)(void *kept);
    /* Examples to predict. NULL: not in a text file; arrays and images are read whatever the training data are. */
    int (*input)(MtcFault *fault, const MtcAsked *asked, const MtcEncoding *encoding, MtcReading *reading,
                 MtcExamples *examples);
    const char *example; /* what the help calls a file of examples to predict */
    bool folders;        /* paths of its origins are folders */
    bool parsed;         /* what was read is kept in a cache, and bad rows or images can be left out */
    bool together;       /* ranks read parts of it, and give each other theirs */
    MtcLevel level;      /* of windows: what their tokens are */
};

#define SOURCE(format) extern const MtcSource mtc_source_##format;
#include "data/sources.def"
#undef SOURCE

/* The source of an origin, and that of the training data. One that the table lacks cannot be opened; it is all NULL else. */
const MtcSource *mtc_source_of(const MtcOrigin *origin);
const MtcSource *mtc_training_source(const MtcModel *model);

/* A file, or folder, of an origin. `folder` as in MtcReading. */
int mtc_find_source(MtcFault *fault, const MtcModel *model, const MtcOrigin *origin, int path, const char *folder,
                    char **found);

/* The vocabulary of the model's training data, with the characters of `encoding`. A fault: the model reads no windows, or its
 * characters are not known (weights that were saved without them). */
int mtc_vocabulary_of(MtcFault *fault, const MtcModel *model, const MtcEncoding *encoding, MtcVocabulary *vocabulary);

#endif
