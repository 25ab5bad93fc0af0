/* Characters of UTF-8, and which of them are letters, numbers and white space. */
#ifndef MTC_UNICODE_H
#define MTC_UNICODE_H

#include "base/common.h"

typedef enum MtcCharacter { MTC_OTHER, MTC_LETTER, MTC_NUMBER, MTC_SPACE } MtcCharacter;

/* The class of each code point, which whoever asks keeps: a million bytes. Free it. */
uint8_t *mtc_character_classes(void);

/* The character that begins at `text`, before `end`, which is behind it; returns its bytes. A byte that begins no character of
 * UTF-8 (by the Unicode standard: no overlong forms, no surrogates, none cut off) is by itself, and *code is MTC_NO_CHARACTER. */
enum { MTC_NO_CHARACTER = 0x10FFFF }; /* no character is assigned there */
int mtc_character(const uint8_t *text, const uint8_t *end, uint32_t *code);
/* The same of the character that ends at `text`, which lies behind `begin`. */
int mtc_character_before(const uint8_t *text, const uint8_t *begin, uint32_t *code);
int mtc_put_character(uint32_t code, uint8_t *bytes); /* returns how many, up to 4 */

#endif
