/* main.c: a saved program as a command: tensors from raw files or a seeded pattern, one run, a checksum an output.

   Exit status: 0 the run went well; 1 it failed; 2 the arguments are wrong; 3 a file cannot be read or written. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { RAN = 0, FAILED = 1, MISUSED = 2, NO_FILE = 3 };

/* What the command line says of one tensor. */
typedef struct named_tensor {
    const char *input;
    const char *output;
} named_tensor;

typedef struct command {
    const pto_program *program;
    const pto_program_tensor *tensors;
    const pto_program_symbol *symbols;
    int32_t n_tensors;
    int32_t n_symbols;
    pto_program_array *arrays;
    pto_program_value *values;
    named_tensor *named;
    int32_t threads;
    uint64_t seed;
} command;

__attribute__((format(printf, 2, 3))) static int complain(int status, const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    fputs("error: ", stderr);
    vfprintf(stderr, format, rest);
    fputs("\n", stderr);
    va_end(rest);
    return status;
}

static int usage(const command *c)
{
    printf("usage: %s [--in NAME=FILE] [--out NAME=FILE] [--dim NAME=N,N,...] [--set NAME=NUMBER] [--threads N] [--seed N]\n\n"
           "Files are raw: elements in row-major order, as they lie in memory. A tensor without a file is filled from the seed.\n\n"
           "tensors:\n", pto_program_name(c->program));
    for (int32_t k = 0; k < c->n_tensors; ++k) {
        const pto_program_tensor *t = &c->tensors[k];
        if (t->is_fresh)
            continue;
        printf("  %-16s %-12s [", t->name, t->dtype);
        for (int32_t d = 0; d < t->rank; ++d)
            printf("%s%" PRId64, d > 0 ? ", " : "", t->dim[d]);
        printf("]  %s%s%s\n", t->is_read ? "in" : "", t->is_written ? "out" : "", t->is_made ? ", between tasks" : "");
    }
    if (c->n_symbols > 0)
        printf("numbers:\n");
    for (int32_t k = 0; k < c->n_symbols; ++k) {
        printf("  %-16s %s", c->symbols[k].name, c->symbols[k].is_float ? "real" : "whole");
        if (c->symbols[k].is_given)
            printf("  (%" PRId64 ")", c->symbols[k].value);
        printf("\n");
    }
    return RAN;
}

static int32_t tensor_named(const command *c, const char *name, size_t length)
{
    for (int32_t k = 0; k < c->n_tensors; ++k)
        if (!c->tensors[k].is_fresh && strlen(c->tensors[k].name) == length && strncmp(c->tensors[k].name, name, length) == 0)
            return k;
    return -1;
}

static bool read_whole(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return errno == 0 && end != text && *end == '\0';
}

static int take_dims(command *c, int32_t slot, const char *text)
{
    const pto_program_tensor *t = &c->tensors[slot];
    pto_program_array *a = &c->arrays[slot];
    const char *at = text;
    for (int32_t d = 0; d < t->rank; ++d) {
        char *end;
        errno = 0;
        long long extent = strtoll(at, &end, 10);
        bool is_last = d == t->rank - 1;
        if (errno != 0 || end == at || *end != (is_last ? '\0' : ',') || extent < 0 || extent > INT32_MAX)
            return complain(MISUSED, "--dim %s takes %d extents with commas between them, found `%s`", t->name, t->rank, text);
        a->dim[d] = extent;
        at = end + 1;
    }
    return RAN;
}

static int take_number(command *c, const char *text, size_t length)
{
    const char *number = text + length + 1;
    bool is_known = false;
    for (int32_t k = 0; k < c->n_symbols; ++k) {     /* one name may stand for several: all uses of it */
        const pto_program_symbol *s = &c->symbols[k];
        if (strlen(s->name) != length || strncmp(s->name, text, length) != 0)
            continue;
        is_known = true;
        c->values[k].is_bound = 1;
        char *end = NULL;
        errno = 0;
        if (s->is_float)
            c->values[k].number = strtod(number, &end);
        if (s->is_float ? errno != 0 || end == number || *end != '\0' : !read_whole(number, &c->values[k].whole))
            return complain(MISUSED, "--set %s takes a %s number, found `%s`", s->name, s->is_float ? "real" : "whole", number);
    }
    return is_known ? RAN : complain(MISUSED, "the program has no number called `%.*s`", (int)length, text);
}

static int take_option(command *c, const char *option, const char *value)
{
    int64_t number;
    if (strcmp(option, "--threads") == 0) {
        if (!read_whole(value, &number) || number < 1 || number > 1024)
            return complain(MISUSED, "--threads takes a whole number from 1 to 1024, found `%s`", value);
        c->threads = (int32_t)number;
        return RAN;
    }
    if (strcmp(option, "--seed") == 0) {
        if (!read_whole(value, &number) || number < 0)
            return complain(MISUSED, "--seed takes a whole number from 0 on, found `%s`", value);
        c->seed = (uint64_t)number;
        return RAN;
    }
    const char *equals = strchr(value, '=');
    if (equals == NULL || equals == value || equals[1] == '\0')
        return complain(MISUSED, "%s takes NAME=%s, found `%s`", option,
                        strcmp(option, "--set") == 0 ? "NUMBER" : strcmp(option, "--dim") == 0 ? "N,N,..." : "FILE", value);
    size_t length = (size_t)(equals - value);
    if (strcmp(option, "--set") == 0)
        return take_number(c, value, length);
    int32_t slot = tensor_named(c, value, length);
    if (slot < 0)
        return complain(MISUSED, "the program binds no tensor called `%.*s`", (int)length, value);
    if (strcmp(option, "--dim") == 0)
        return take_dims(c, slot, equals + 1);
    if (strcmp(option, "--in") == 0)
        c->named[slot].input = equals + 1;
    else
        c->named[slot].output = equals + 1;
    return RAN;
}

static int read_arguments(command *c, int argc, char **argv)
{
    static const char *const known[] = {"--in", "--out", "--dim", "--set", "--threads", "--seed"};
    for (int k = 1; k < argc; k += 2) {
        bool is_known = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i)
            is_known = is_known || strcmp(argv[k], known[i]) == 0;
        if (!is_known)
            return complain(MISUSED, "there is no option `%s`: --help lists them", argv[k]);
        if (k + 1 == argc)
            return complain(MISUSED, "%s takes a value", argv[k]);
        int status = take_option(c, argv[k], argv[k + 1]);
        if (status != RAN)
            return status;
    }
    return RAN;
}

/* ---- what is in a tensor ---- */

static uint64_t mixed(uint64_t x)      /* splitmix64 */
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t fnv(uint64_t state, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t k = 0; k < count; ++k)
        state = (state ^ at[k]) * UINT64_C(0x100000001B3);
    return state;
}

static size_t size_of(const pto_program_tensor *t, const pto_program_array *a)
{
    size_t count = 1;
    for (int32_t d = 0; d < t->rank; ++d)
        count *= (size_t)a->dim[d];
    return count;
}

/* An element of k / 8 with -8 <= k < 8, which every dtype of floats holds exactly: as the bits of that dtype. */
static uint64_t float_bits(const char *dtype, int32_t elem_bytes, int k)
{
    double value = k / 8.0;
    float narrow = (float)value;
    uint64_t wide = 0;
    uint32_t bits;
    memcpy(&wide, &value, sizeof wide);
    memcpy(&bits, &narrow, sizeof bits);
    if (elem_bytes == 8)
        return wide;
    if (elem_bytes == 4)
        return bits;
    if (strcmp(dtype, "bfloat16") == 0)
        return bits >> 16;
    int exponent_bits = elem_bytes == 2 ? 5 : strstr(dtype, "e5m2") != NULL ? 5 : 4;
    int fraction_bits = 8 * elem_bytes - 1 - exponent_bits;
    if (k == 0)
        return 0;
    uint32_t exponent = ((bits >> 23) & 0xFF) - 127 + (uint32_t)((1 << (exponent_bits - 1)) - 1);
    uint32_t fraction = (bits & 0x7FFFFF) >> (23 - fraction_bits);
    return (uint64_t)(bits >> 31) << (8 * elem_bytes - 1) | (uint64_t)exponent << fraction_bits | fraction;
}

/* Floats are eighths in [-1, 1), whole numbers and masks 0 or 1. */
static void fill(const command *c, int32_t slot)
{
    const pto_program_tensor *t = &c->tensors[slot];
    char *at = c->arrays[slot].data;
    uint64_t stream = fnv(mixed(c->seed), t->name, strlen(t->name));
    bool is_float = strstr(t->dtype, "float") != NULL;
    for (size_t n = 0, count = size_of(t, &c->arrays[slot]); n < count; ++n, at += t->elem_bytes) {
        uint64_t drawn = mixed(stream + n);
        uint64_t bits = is_float ? float_bits(t->dtype, t->elem_bytes, (int)(drawn >> 60) - 8) : drawn >> 63;
        memcpy(at, &bits, (size_t)t->elem_bytes);     /* little-endian */
    }
}

static int read_file(const command *c, int32_t slot, size_t bytes)
{
    const char *path = c->named[slot].input;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return complain(NO_FILE, "%s: %s", path, strerror(errno));
    size_t got = fread(c->arrays[slot].data, 1, bytes, file);
    bool is_longer = got == bytes && fgetc(file) != EOF, is_broken = ferror(file) != 0;
    fclose(file);
    if (is_broken)
        return complain(NO_FILE, "%s cannot be read", path);
    if (got != bytes || is_longer)
        return complain(NO_FILE, "%s holds %s than the %zu bytes of tensor `%s`: --dim gives other extents", path,
                        is_longer ? "more" : "less", bytes, c->tensors[slot].name);
    return RAN;
}

static int write_file(const command *c, int32_t slot, size_t bytes)
{
    const char *path = c->named[slot].output;
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return complain(NO_FILE, "%s: %s", path, strerror(errno));
    bool is_whole = fwrite(c->arrays[slot].data, 1, bytes, file) == bytes;
    is_whole = fclose(file) == 0 && is_whole;
    return is_whole ? RAN : complain(NO_FILE, "%s cannot be written: %s", path, strerror(errno));
}

static int make_tensors(command *c)
{
    for (int32_t k = 0; k < c->n_tensors; ++k) {
        const pto_program_tensor *t = &c->tensors[k];
        pto_program_array *a = &c->arrays[k];
        if (t->is_fresh)
            continue;
        int64_t step = 1;
        for (int32_t d = t->rank - 1; d >= 0; --d) {
            a->stride[d] = step;
            if (__builtin_mul_overflow(step, a->dim[d], &step) || step > (INT64_C(1) << 44))
                return complain(MISUSED, "tensor `%s` is too large", t->name);
        }
        size_t bytes = size_of(t, a) * (size_t)t->elem_bytes;
        a->rank = t->rank;
        a->is_bound = 1;
        a->data = aligned_alloc(64, (bytes + 127) / 64 * 64);
        if (a->data == NULL)
            return complain(FAILED, "no memory for the %zu bytes of tensor `%s`", bytes, t->name);
        if (c->named[k].input != NULL) {
            int status = read_file(c, k, bytes);
            if (status != RAN)
                return status;
        } else if (t->is_read && !t->is_made) {
            fill(c, k);
        } else {
            memset(a->data, 0, bytes);
        }
    }
    return RAN;
}

static int show_outputs(const command *c)
{
    for (int32_t k = 0; k < c->n_tensors; ++k) {
        const pto_program_tensor *t = &c->tensors[k];
        if (t->is_fresh)
            continue;
        size_t bytes = size_of(t, &c->arrays[k]) * (size_t)t->elem_bytes;
        if (c->named[k].output != NULL && write_file(c, k, bytes) != RAN)
            return NO_FILE;
        if (t->is_written && !t->is_made)
            printf("checksum %s = %016" PRIx64 "\n", t->name, fnv(UINT64_C(0xCBF29CE484222325), c->arrays[k].data, bytes));
    }
    return RAN;
}

static int run(command *c)
{
    int status = make_tensors(c);
    if (status != RAN)
        return status;
    pto_program_result result;
    if (pto_program_run(c->program, c->arrays, c->values, c->threads, &result) != PTO_OK)
        return complain(FAILED, "%s", result.message);
    printf("tasks = %" PRId64 "\nthreads = %d\nrun_ms = %.3f\ntotal_cycles = %" PRId64 "\n", result.n_tasks, result.threads, result.run_ms,
           result.total_cycles);
    return show_outputs(c);
}

int main(int argc, char **argv)
{
    command c = {.program = pto_program_here()};
    c.n_tensors = pto_program_tensors(c.program, &c.tensors);
    c.n_symbols = pto_program_symbols(c.program, &c.symbols);
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return usage(&c);
    c.arrays = calloc((size_t)c.n_tensors + 1, sizeof *c.arrays);
    c.values = calloc((size_t)c.n_symbols + 1, sizeof *c.values);
    c.named = calloc((size_t)c.n_tensors + 1, sizeof *c.named);
    int status = c.arrays != NULL && c.values != NULL && c.named != NULL ? RAN : complain(FAILED, "no memory");
    for (int32_t k = 0; status == RAN && k < c.n_tensors; ++k)
        memcpy(c.arrays[k].dim, c.tensors[k].dim, sizeof c.arrays[k].dim);
    if (status == RAN)
        status = read_arguments(&c, argc, argv);
    if (status == RAN)
        status = run(&c);
    if (fflush(stdout) != 0 && status == RAN)
        status = complain(NO_FILE, "the results cannot be written: %s", strerror(errno));
    for (int32_t k = 0; c.arrays != NULL && k < c.n_tensors; ++k)
        free(c.arrays[k].data);
    free(c.arrays);
    free(c.values);
    free(c.named);
    return status;
}
