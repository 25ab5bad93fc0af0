#include "plot/font.h"

enum { SPACING = 2, FIRST = ' ', LAST = '~', CURVE_PIECES = 6 };

/* A letter: its width, then its strokes. A stroke is a row of points, each a digit for x and one for y (':' is 10), joined by
 * lines; after '~' it is a curve that the points between its ends draw towards them. */
static const char *const letters[] = {
    "1", "00005 0808", "20002 2022", "41018 3038 0242 0646", "4~4241010444470706 2029",
    "66008 ~102023030010 ~556568484555", "55812 ~1200304305 ~05084854", "00002", "2~20020729", "2~00222709",
    "42026 0145 4105", "42327 0545", "11709", "30535", "00808", "33009",
    /* 0 to 9 */
    "4~204048080020", "4022028 0848", "4~0200404308 0848", "4~0100404414 ~1444480807", "438300646",
    "4400004 ~040343480807", "4~300005 ~050343480805", "4004018", "4~204044040020 ~244448080424",
    "4~434505004043 ~434818",
    /* : to @ */
    "00303 0808", "11313 1709", "4420548", "40444 0646", "4024508", "4~0200404425 2526 2828",
    "6~58080060664643 ~324246262232",
    /* A to Z */
    "6083068 1555", "50030 ~30505434 0434 ~34545838 0838 0008", "5~525000085856", "50020 ~20505828 2808 0800",
    "440000848 0434", "4400008 0434", "5~525000085854 5434", "50008 5058 0454", "00008", "33035 ~35380806",
    "50008 5005 2358", "4000848", "60800366068", "508005850", "6~306068080030", "50800 0030 ~30505434 3404",
    "6~306068080030 4669", "50800 0030 ~30505434 3404 2458", "5~5250000454580806", "40040 2028", "50004 ~04085854 5450",
    "6003860", "80028406880", "50058 5008", "40024 4024 2428", "500500858",
    /* [ to ` */
    "220000929", "30039", "200202909", "4032043", "40949", "10012",
    /* a to z */
    "44248 ~444202084846", "40008 ~040242480806", "4~434202084847", "44048 ~444202084846", "40545 ~454202084847",
    "3~301013 1318 0232", "4~444202084846 42484 ~484:1:0:", "40008 ~0402424448", "00208 0000", "11218 ~181:0: 1010",
    "40008 4206 1548", "10006 ~060818", "60208 ~0402323438 ~3432626468", "40208 ~0402424448", "4~224248080222",
    "4020: ~040242480806", "4424: ~444202084846", "20208 ~050222", "4~4342020545480807", "31016 ~161838 0232",
    "44248 ~0206084846", "4022842", "60218325862", "40248 4208", "40228 421:", "402420848",
    /* { to ~ */
    "3~30101404 ~04141939", "00009", "3~00202434 ~34242909", "4~06133744"};

static const char ELLIPSIS[] = "40808 2828 4848", OTHER[] = "40040480800";

_Static_assert(sizeof letters / sizeof *letters == LAST - FIRST + 1, "a letter for each printable character");

/* The letter for the character at *at, which is moved on. */
static const char *next_letter(const char **at) {
    const unsigned char *c = (const unsigned char *)*at;
    int length = utf8_length(c, c + strlen(*at));
    *at += length ? length : 1;
    if (*c >= FIRST && *c <= LAST)
        return letters[*c - FIRST];
    return length == 3 && memcmp(c, "\u2026", 3) == 0 ? ELLIPSIS : OTHER;
}

int font_width(const char *text) {
    int width = 0;
    while (*text)
        width += *next_letter(&text) - '0' + SPACING;
    return width ? width - SPACING : 0;
}

typedef struct Pen {
    double left;
    void (*put)(void *to, Place a, Place b);
    void *to;
} Pen;

static Place point_at(const Pen *pen, const char *stroke) {
    return (Place){pen->left + stroke[0] - '0', stroke[1] - '0'};
}

static Place middle_of(Place a, Place b) {
    return (Place){(a.x + b.x) / 2, (a.y + b.y) / 2};
}

/* A parabola from a to b that leaves and arrives in the direction of `towards`. */
static void draw_arc(const Pen *pen, Place a, Place towards, Place b) {
    Place before = a;
    for (int i = 1; i <= CURVE_PIECES; i++) {
        double t = (double)i / CURVE_PIECES, s = 1 - t;
        Place next = {s * s * a.x + 2 * s * t * towards.x + t * t * b.x,
                      s * s * a.y + 2 * s * t * towards.y + t * t * b.y};
        pen->put(pen->to, before, next);
        before = next;
    }
}

/* Between two points that draw it the curve passes their middle. */
static void draw_curve(const Pen *pen, const char *stroke, int points) {
    Place from = point_at(pen, stroke);
    for (int i = 1; i < points - 1; i++) {
        Place towards = point_at(pen, stroke + 2 * i), next = point_at(pen, stroke + 2 * i + 2);
        Place end = i == points - 2 ? next : middle_of(towards, next);
        draw_arc(pen, from, towards, end);
        from = end;
    }
}

static void draw_stroke(const Pen *pen, const char *stroke, size_t length) {
    if (*stroke == '~') {
        draw_curve(pen, stroke + 1, (int)(length - 1) / 2);
        return;
    }
    for (size_t i = 0; i + 3 < length; i += 2)
        pen->put(pen->to, point_at(pen, stroke + i), point_at(pen, stroke + i + 2));
}

void font_draw(const char *text, double left, void (*put)(void *to, Place a, Place b), void *to) {
    Pen pen = {left, put, to};
    while (*text) {
        const char *letter = next_letter(&text);
        for (const char *stroke = letter + 1; *stroke;) {
            size_t length = strcspn(stroke, " ");
            draw_stroke(&pen, stroke, length);
            stroke += length + strspn(stroke + length, " ");
        }
        pen.left += *letter - '0' + SPACING;
    }
}
