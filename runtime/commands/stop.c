/* Where a text that is made ends: at the first stop that is complete, byte by byte, so that borders of tokens do not matter. A byte of UTF-8
 * says whether it begins a character: a stop that is UTF-8 is found at characters alone. */
#include "commands/generate.h"

#include <string.h>

static void append(MtcText *text, char byte) {
    if (text->length + 1 >= text->capacity) {
        text->capacity = text->capacity ? 2 * text->capacity : 256;
        text->at = (char *)mtc_memory(text->at, text->capacity);
    }
    text->at[text->length++] = byte;
    text->at[text->length] = 0;
}

/* Are the last bytes of the text the first ones of the stop? */
static bool ends_with(const MtcStops *stops, const MtcText *text, const MtcText *stop, size_t bytes) {
    const size_t at = text->length - bytes;
    const bool begins = !stops->words || at == 0 || text->at[at - 1] == ' ';
    return begins && memcmp(text->at + at, stop->at, bytes) == 0;
}

/* How many of the last bytes a stop has: of a complete one, which ends the text, else as its beginning. */
static size_t last_bytes(const MtcStops *stops, const MtcText *text, bool complete) {
    size_t most = text->length < stops->longest ? text->length : stops->longest;
    for (size_t bytes = most; bytes > 0; bytes--)
        for (int i = 0; i < stops->count; i++) {
            const MtcText *stop = &stops->text[i];
            const bool fits = complete ? bytes == stop->length : bytes < stop->length;
            if (fits && ends_with(stops, text, stop, bytes))
                return bytes;
        }
    return 0;
}

void mtc_made_add(MtcMade *made, const MtcStops *stops, const char *bytes, size_t count) {
    for (size_t i = 0; i < count && !made->stopped; i++) {
        append(&made->text, bytes[i]);
        const size_t stop = last_bytes(stops, &made->text, true);
        made->stopped = stop > 0;
        made->text.length -= stop;
    }
    made->known = made->text.length - (made->stopped ? 0 : last_bytes(stops, &made->text, false));
}

void mtc_made_end(MtcMade *made) {
    made->known = made->text.length;
}
