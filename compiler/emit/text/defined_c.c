/* What a C program's headers define for the whole file, so that no function of it can have the name: C has one function of a
 * name. And the parameters of the functions that call kernels, which would hide one. */
#include "emit/text/names.h"

#include <ctype.h>

/* Each with f and l behind it, too. */
static const char mathematics[] = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc "
                                  "exp exp2 expm1 fabs fdim finite floor "
                                  "fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint "
                                  "llround log log10 log1p log2 logb "
                                  "lrint lround modf nan nearbyint nextafter nexttoward pow remainder remquo rint "
                                  "round scalb scalbln scalbn significand "
                                  "sin sinh sqrt tan tanh tgamma trunc y0 y1 yn";

static const char system_words[] = "asctime bcmp bcopy bzero clock ctime daylight difftime dysize explicit_bzero ffs "
                                   "ffsl ffsll fpclassify gmtime index "
                                   "isgreater isgreaterequal isless islessequal islessgreater isunordered "
                                   "kill_dependency lgamma_r lgammaf_r lgammal_r "
                                   "localtime math_errhandling mktime nanosleep offsetof rindex signgam stpcpy stpncpy "
                                   "time timegm timelocal timespec_get "
                                   "timezone tzname tzset asctime_r ctime_r gmtime_r localtime_r";

/* Functions of headers that are not included; the C compiler knows them all the same, and warns. */
static const char builtin_words[] =
    "abort abs alloca calloc dcgettext dgettext execl execle execlp execv execve execvp exit fork fprintf fputc fputs "
    "free "
    "fscanf fwrite gettext imaxabs isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct "
    "isspace isupper "
    "iswalnum iswalpha iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit "
    "isxdigit "
    "labs llabs malloc printf putc putchar puts realloc scanf snprintf sprintf sscanf toascii tolower toupper towlower "
    "towupper vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf";

/* Of kernels_lib, and parameters. */
static const char library_words[] =
    "AddPairs Axis Block Element FloatMode Held Integer MatmulLeft MatmulPairs MatmulPiece MatmulPixels MatmulTaps "
    "MatmulVector MatrixKind Narrow Outputs Part Run WindowWays batch_of_examples "
    "batch_of_step "
    "bfloat16 e4m3 "
    "bits_of_float "
    "block_of "
    "columns_from "
    "copied_at copied_bytes copy_block copy_bytes copy_clipped copy_inside copy_numbers copy_window copy_windows "
    "copy_zeros count double_max double_min filter "
    "filter_of "
    "find_runs float16 float_of_bits float_bits float_exp float_log float_max float_min float_mode float_tanh "
    "flush_subnormals "
    "element_at example_number is_narrow "
    "kernel "
    "least part_of row_at rows_from rows_lie_evenly seen_at sees_inside set_float_mode to_e4m3 to_i8 to_narrow truth "
    "window "
    "window_of "
    "all_see_inside axis_before axis_span copy_seen double_relu first_seeing float_relu has_room "
    "is_of_whole_pixels may_pack_windows outputs_of pack_pixels pack_tap pack_windows pack_zeros point_at "
    "see_columns see_copies see_image see_rows seen_line seen_lines "
    "zero_numbers";

static const char *const prefixes[] = {"mtc_",     "Mtc",     "MTC_",    "TEAM_",  "i8_",    "I8",
                                       "pthread_", "atomic_", "memory_", "sched_", "timer_", "clock_",
                                       "omp_",     "str",     "mem",     "matmul", "team_",  "e4m3_"};

static bool has_prefix(const char *name) {
    for (size_t k = 0; k < sizeof prefixes / sizeof *prefixes; k++)
        if (strncmp(name, prefixes[k], strlen(prefixes[k])) == 0)
            return true;
    return false;
}

static bool is_mathematics(const char *name) {
    size_t length = strlen(name);
    char stem[32] = "";
    if (length > 1 && length < sizeof stem && strchr("fl", name[length - 1]))
        memcpy(stem, name, length - 1);
    return has_word(mathematics, name) || (*stem && has_word(mathematics, stem));
}

bool defined_in_c(const char *name) {
    size_t length = strlen(name);
    bool type = length > 2 && strcmp(name + length - 2, "_t") == 0;
    return type || has_prefix(name) || is_mathematics(name) || has_word(system_words, name) ||
           has_word(builtin_words, name) || has_word(library_words, name);
}

/* Vectors of CUDA's are one of these, with a number behind it. */
static const char vector_types[] = "char uchar short ushort int uint long ulong longlong ulonglong float double";
/* And what kernels call of the library: a local of the name would hide it. */
static const char cuda_words[] =
    "std cuda threadIdx blockIdx blockDim gridDim warpSize dim3 half bfloat16 float16 e4m3 tf32 tf32x3 uint ushort "
    "ulong "
    "fill_pack load_pack store_pack hold_row row_memory preloaded preloaded_early of_columns vectorized matmul_turns "
    "rows_from sum_taps sum_terms sum_outputs both_images terms_of own_of shared_bytes_of wanted_bytes_of tiles_of "
    "tiles_that_share first_rows is_integer is_float8 is_early "
    "is_in_terms "
    "has_few_rows has_numbers has_squares takes_taps attends_by_rows attends_on_tensor_cores ring_bytes log2_e";

/* Types of the library, and no others of its words, begin with a capital and go on without: Pack, TensorTile. */
static bool is_type_of_library(const char *name) {
    return isupper((unsigned char)name[0]) && islower((unsigned char)name[1]);
}

bool defined_in_cuda(const char *name) {
    size_t length = strlen(name);
    if (strncmp(name, "team_", strlen("team_")) == 0 || is_type_of_library(name))
        return true;
    char stem[16] = "";
    if (length > 1 && length < sizeof stem && strchr("1234", name[length - 1]))
        memcpy(stem, name, length - 1);
    return has_word(cuda_words, name) || (*stem && has_word(vector_types, stem));
}

/* What programs and their kernels call: no kernel can have the name, but a local of one that does not call it. Of a function for
 * an operator there are several: attend, attend_tiles. */
static const char called_words[] =
    "await_rows bring_rows divide_up draw examples filter folded gaussian gaussian_in_set launch_evaluation "
    "launch_shuffle "
    "launch_until product_shared product_tiles rounded rows_bytes sum_of_a sum_of_b window with_row";

bool called_in_cuda(const char *name) {
    static const char *const prefixes_of_operators[] = {"attend_", "gather_grad_", "recur_"};
    for (size_t k = 0; k < sizeof prefixes_of_operators / sizeof *prefixes_of_operators; k++)
        if (strncmp(name, prefixes_of_operators[k], strlen(prefixes_of_operators[k])) == 0)
            return true;
    return defined_in_cuda(name) || has_word(called_words, name);
}

/* ---- sizes, in capitals ---- */

static const char *const constant_prefixes[] = {
    "MTC_",   "TEAM_",   "NV_",      "CUDA",    "CU_",      "PTHREAD_", "MATMUL_",  "MATRIX_",  "GROUP_", "STEP_",
    "MOST_",  "M_",      "FP_",      "HUGE_",   "SNAN",     "ATOMIC_",  "CLOCK",    "TIME_",    "TIMER_", "SCHED_",
    "SIG_",   "ADJ_",    "MOD_",     "STA_",    "NL_",      "FD_",      "BC_",      "XATTR_",   "EXIT_",  "MATH_",
    "FEED_",  "PLAIN_",  "PACK_",    "TURN_",   "INT_",     "INT8_",    "INT16_",   "INT32_",   "INT64_", "UINT_",
    "UINT8_", "UINT16_", "UINT32_",  "UINT64_", "CHAR_",    "SCHAR_",   "UCHAR_",   "SHRT_",    "USHRT_", "LONG_",
    "ULONG_", "LLONG_",  "ULLONG_",  "INTMAX_", "UINTMAX_", "INTPTR_",  "UINTPTR_", "PTRDIFF_", "SIZE_",  "WCHAR_",
    "WINT_",  "BOOL_",   "FLOAT16_", "NARROW_", "ELEMENT_", "I8_",      "FEW_",     "E4M3_"};

static const char constant_words[] =
    "ATTEND_BLOCK ATTEND_SCORES ATTEND_WIDEST DRAWN_EACH GATHER_BATCH GATHER_MANY GATHER_STEPS GRU HEADS_AT_A_TIME "
    "LN_2 LOG2_E "
    "LSTM OWN_ROWS "
    "RECUR_ROWS RECUR_STATE RECUR_SUMS RECUR_UNITS RNN_RELU RNN_TANH WARPS WARP_ROWS "
    "BIG_ENDIAN BOX BYTE_ORDER CHUNK CHUNKS DEEP_STEPS DIRECT_BYTES GROUPS HAS_TENSOR_CORES LANES LARGEST_HEAD "
    "LARGEST_PLAIN_SMALL LARGEST_STATE LISTED LITTLE_ENDIAN MAJOR_VERSION MAPS_ONLY "
    "MAP_BYTES MAXFLOAT MAX_CANON MAX_INPUT MINOR_VERSION NFDBITS NZERO PAD PANEL_ROW PATCH_LEVEL "
    "PDP_ENDIAN PIPE_BUF PLANNED_SHARED SHARED_ALIGNMENT STAGES STATE_HELD STEPS SUBNORMALS_ARE_ZERO THREADS "
    "WCONTINUED WEXITED "
    "WEXITSTATUS WIDEST_BLOCK WIFCONTINUED WIFEXITED WIFSIGNALED WIFSTOPPED WNOHANG WNOWAIT WORD_BIT LONG_BIT WSTOPPED "
    "WSTOPSIG WTERMSIG WUNTRACED";

static bool ends_so(const char *name, const char *ending) {
    const size_t length = strlen(name), end = strlen(ending);
    return length > end && strcmp(name + length - end, ending) == 0;
}

bool defined_constant(const char *name) {
    for (size_t k = 0; k < sizeof constant_prefixes / sizeof *constant_prefixes; k++)
        if (strncmp(name, constant_prefixes[k], strlen(constant_prefixes[k])) == 0)
            return true;
    return ends_so(name, "_MAX") || ends_so(name, "_MIN") || has_word(constant_words, name);
}
