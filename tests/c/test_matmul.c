/* test_matmul.c: products of matrices against three loops: dtypes, transpositions, odd shapes, gaps between rows, exact scratch. */
#define PTO_USES_MATMUL_F32
#define PTO_USES_MATMUL_F64
#define PTO_USES_MATMUL_F16
#define PTO_USES_MATMUL_BF16
#define PTO_USES_MATMUL_I8
#define PTO_USES_MATMUL_I32
#define PTO_USES_MATMUL_I64
#define PTO_USES_FEW_ROWS
#define PTO_USES_SHORT_ROWS
#include "pto_matmul.h"

#include "check.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* pack_bytes() of pto_wsp/passes/kernel/products.py */
static size_t pack_bytes(int64_t word, int64_t m, int64_t k)
{
    const int64_t width = 128 / word, words = least(k, 256);
    return (size_t)((width * words + (k > 256 || m > 512 ? 2 : 1) * least(m, 512) * ((words + 15) / 16 * 16 + 16)) * word);
}

static int64_t c_offset;     /* elements before c, behind the start of a line of cache */

/* Operands end where their memory ends, so that a sanitizer sees a read too far. `gap`: elements behind each row. */
#define PRODUCT_CASE(t, T, S, LOW, MADE, OF)                                                                         \
    static void product_##t(int64_t m, int64_t n, int64_t k, int flags, int64_t gap)                                 \
    {                                                                                                                \
        const int64_t a_rows = flags & PTO_MATMUL_TRANSPOSE_A ? k : m, a_cols = flags & PTO_MATMUL_TRANSPOSE_A ? m : k;\
        const int64_t b_rows = flags & PTO_MATMUL_TRANSPOSE_B ? n : k, b_cols = flags & PTO_MATMUL_TRANSPOSE_B ? k : n;\
        const int64_t lda = a_cols + gap, ldb = b_cols + gap, ldc = n + gap;                                         \
        const size_t a_size = (size_t)((a_rows - 1) * lda + a_cols), b_size = (size_t)((b_rows - 1) * ldb + b_cols); \
        const size_t c_size = (size_t)((m - 1) * ldc + n);                                                           \
        const int turn = flags & PTO_MATMUL_TURN;                                                                    \
        const size_t bytes = pack_bytes(sizeof(S), turn ? n : m, k);                                   \
        T *a = malloc(a_size * sizeof(T)), *b = malloc(b_size * sizeof(T));                                          \
        void *lines = NULL;                                                                                          \
        CHECK(posix_memalign(&lines, 64, (size_t)(c_offset + (int64_t)c_size) * sizeof(S)) == 0);                    \
        S *c = (S *)lines + c_offset, *want = malloc(c_size * sizeof(S));                                            \
        char *pack = aligned_alloc(64, bytes);                                                                       \
        memset(pack, 0xff, bytes);                                                                                   \
        for (size_t i = 0; i < a_size; ++i)                                                                          \
            a[i] = MADE(pick(LOW, 8));                                                                               \
        for (size_t i = 0; i < b_size; ++i)                                                                          \
            b[i] = MADE(pick(LOW, 8));                                                                               \
        for (size_t i = 0; i < c_size; ++i)                                                                          \
            want[i] = c[i] = (S)pick(-9, 9);                                                                         \
        for (int64_t i = 0; i < m; ++i)                                                                              \
            for (int64_t j = 0; j < n; ++j) {                                                                        \
                S sum = flags & PTO_MATMUL_ACCUMULATE ? c[i * ldc + j] : 0;                                          \
                for (int64_t p = 0; p < k; ++p)                                                                      \
                    sum += OF(a[flags & PTO_MATMUL_TRANSPOSE_A ? p * lda + i : i * lda + p]) *                       \
                           OF(b[flags & PTO_MATMUL_TRANSPOSE_B ? j * ldb + p : p * ldb + j]);                        \
                want[i * ldc + j] = sum;                                                                             \
            }                                                                                                        \
        pto_matmul_##t(c, ldc, a, lda, b, ldb, m, n, k, flags, pack);                                                \
        if (memcmp(c, want, c_size * sizeof(S)) != 0) {                                                              \
            printf("    " #t " m %d n %d k %d flags %d gap %d\n", (int)m, (int)n, (int)k, flags, (int)gap);          \
            CHECK(!"the product");                                                                                   \
        }                                                                                                            \
        free(a), free(b), free(lines), free(want), free(pack);                                                           \
    }

/* whole numbers: every order of the sums gives the same */
PRODUCT_CASE(f32, float, float, -9, (float), (float))
PRODUCT_CASE(f64, double, double, -9, (double), (double))
PRODUCT_CASE(f16, uint16_t, float, -9, pto_narrow_f16, pto_widen_f16)
PRODUCT_CASE(bf16, uint16_t, float, -9, pto_narrow_bf16, pto_widen_bf16)
PRODUCT_CASE(i8, int8_t, int32_t, -128, (int8_t), (int32_t))
PRODUCT_CASE(i32, int32_t, int32_t, -9, (int32_t), (int32_t))
PRODUCT_CASE(i64, int64_t, int64_t, -9, (int64_t), (int64_t))

static void all_dtypes(int64_t m, int64_t n, int64_t k, int flags, int64_t gap)
{
    product_f32(m, n, k, flags, gap);
    product_f64(m, n, k, flags, gap);
    product_f16(m, n, k, flags, gap);
    product_bf16(m, n, k, flags, gap);
    product_i8(m, n, k, flags, gap);
    product_i32(m, n, k, flags, gap);
    product_i64(m, n, k, flags, gap);
}

static void small_products_of_every_size(void)
{
    for (int64_t size = 1; size <= 20; ++size)
        for (int flags = 0; flags < 8; ++flags) {
            all_dtypes(size, 21 - size, pick(1, 40), flags, pick(0, 3));
            all_dtypes(pick(1, 20), size, pick(1, 70), flags, pick(0, 3));
            all_dtypes(pick(1, 20), pick(1, 20), size, flags, 0);
        }
}

static void products_around_panels_and_steps(void)
{
    static const int64_t edges[] = {31, 32, 33, 63, 64, 65, 127, 129, 255, 256, 257, 300, 512, 513, 600};
    enum { N = sizeof edges / sizeof *edges };
    for (int round = 0; round < CASES(120); ++round) {
        const int flags = (int)pick(0, 7);
        all_dtypes(edges[pick(0, 6)], edges[pick(0, 7)], edges[pick(0, N - 1)], flags, pick(0, 1) * pick(1, 40));
    }
    all_dtypes(520, 140, 1030, PTO_MATMUL_ACCUMULATE, 3);
    product_i8(5, 40, 4100, PTO_MATMUL_TRANSPOSE_B, 1);
    product_f32(14, 64, 300, 0, 1024 - 64);        /* rows on the same cache set are packed */
    product_f32(40, 64, 512, PTO_MATMUL_ACCUMULATE, 0);
    product_f32(530, 100, 600, PTO_MATMUL_ACCUMULATE, 1024 - 600);   /* chunks of packed rows, an odd number of steps */
}

/* panels begin where a vector of c does, and the last holds the columns of both ends */
static void products_into_any_place_of_a_line(void)
{
    for (c_offset = 0; c_offset < 16; ++c_offset) {
        product_f32(40, 64, 300, 0, 1024 - 64);
        product_f32(40, 64, 300, PTO_MATMUL_ACCUMULATE, 1024 - 64);
        all_dtypes(30, 96, 520, (int)pick(0, 7), 1024 - 96);
        all_dtypes(13, 32, pick(1, 70), (int)pick(0, 7), 1024 - 32);
        product_f32(14, 75, 40, (int)pick(0, 1), 1024 - 75);       /* panels begin with the columns where the last is short anyway */
    }
    c_offset = 0;
}

/* blocks of rows share what is left, and up to one block reads b where it lies, however far apart its rows are */
static void products_of_every_count_of_rows(void)
{
    for (int64_t rows = 1; rows <= 40; ++rows) {
        product_f32(rows, 75, 260, (int)pick(0, 1), 600);
        all_dtypes(rows, 33, pick(1, 20), (int)pick(0, 7), pick(0, 3));
    }
}

static void products_of_a_few_rows_in_place(void)
{
    for (int64_t few = 1; few <= 3; ++few)
        for (int64_t n = 1; n < 420; n += 1 + n / 3)
            for (int64_t k = 1; k < 700; k += 1 + k) {
                const int flags = PTO_MATMUL_FEW_ROWS | (int)pick(0, 1);
                const int64_t gap = pick(0, 5);
                product_f32(few, n, k, flags, gap);
                product_f64(few, n, k, flags, gap);
                product_i32(few, n, k, flags, gap);
                product_i64(few, n, k, flags, gap);
            }
}

static void products_of_a_few_rows_or_columns(void)
{
    for (int64_t few = 1; few <= 9; ++few)
        for (int flags = 0; flags < 8; ++flags) {
            all_dtypes(few, 300 + few, 270, flags, 0);
            all_dtypes(200 + few, few, 270, flags, 5);
            all_dtypes(70 + few, few, 270, flags | PTO_MATMUL_TURN, 1);
        }
}

/* rows that are not there: as products with rows of zeros */
static void products_of_short_operands(void)
{
    enum { M = 40, N = 96, K = 300, STEP = 512 };     /* rows of b lie so far apart that panels are packed */
    static float a[M * K], b[K * STEP], c_memory[M * N + 16] __attribute__((aligned(64))), want[M * N] __attribute__((aligned(64)));
    static int8_t bytes_a[M * K], bytes_b[N * K];
    static int32_t sums[M * N], want_sums[M * N];
    static char pack[1 << 18] __attribute__((aligned(64)));
    float *const c = c_memory + 5;                     /* no vector begins here */
    const int64_t counts[] = {-1, 0, 1, 2, 12, 13, 39, 40, 41};
    for (size_t n = 0; n < sizeof counts / sizeof *counts; ++n) {
        for (int64_t i = 0; i < M * K; ++i) {
            bytes_a[i] = (int8_t)(i / K < counts[n] ? pick(-128, 127) : 0);
            a[i] = bytes_a[i] / 16;
        }
        for (int64_t i = 0; i < N * K; ++i)
            bytes_b[i] = (int8_t)pick(-128, 127);
        for (int64_t i = 0; i < K * STEP; ++i)
            b[i] = (float)pick(-8, 8);
        b[5] = 1.0f / 0.0f;                        /* 0 times infinity is no number, in the rows that are not there too */
        pto_matmul_f32(want, N, a, K, b, STEP, M, N, K, 0, pack);
        pto_matmul_i8(want_sums, N, bytes_a, K, bytes_b, K, M, N, K, PTO_MATMUL_TRANSPOSE_B, pack);
        for (int64_t i = (counts[n] < 0 ? 0 : counts[n]) * K; i < M * K; ++i)
            a[i] = 7, bytes_a[i] = 7;
        memset(c_memory, 0xff, sizeof c_memory);
        memset(sums, 0xff, sizeof sums);
        pto_matmul_short_f32(c, N, a, K, b, STEP, counts[n], M, N, K, 0, pack);
        pto_matmul_short_i8(sums, N, bytes_a, K, bytes_b, K, counts[n], M, N, K, PTO_MATMUL_TRANSPOSE_B, pack);
        for (int64_t i = 0; i < M * N; ++i)
            CHECK(c[i] == want[i] || (c[i] != c[i] && want[i] != want[i]));
        CHECK(memcmp(sums, want_sums, sizeof sums) == 0);
    }
}

static void nothing_to_sum_leaves_zero_or_what_was(void)
{
    float c[4] = {1, 2, 3, 4}, none = 0;
    pto_matmul_f32(c, 2, &none, 0, &none, 2, 2, 2, 0, PTO_MATMUL_ACCUMULATE, 0);
    CHECK(c[0] == 1 && c[3] == 4);
    pto_matmul_f32(c, 2, &none, 0, &none, 2, 2, 2, 0, 0, 0);
    CHECK(c[0] == 0 && c[1] == 0 && c[2] == 0 && c[3] == 0);
}

static void extremes_of_i8(void)
{
    enum { K = 1029 };
    int8_t a[2 * K], b[2 * K];
    int32_t c[4];
    static char pack[1 << 18] __attribute__((aligned(64)));
    for (int i = 0; i < K; ++i)
        a[i] = -128, a[K + i] = 127, b[i] = -128, b[K + i] = 127;
    pto_matmul_i8(c, 2, a, K, b, K, 2, 2, K, PTO_MATMUL_TRANSPOSE_B, pack);
    CHECK_EQ(c[0], 16384 * K);
    CHECK_EQ(c[1], -16256 * K);
    CHECK_EQ(c[2], -16256 * K);
    CHECK_EQ(c[3], 16129 * K);
}

int main(void)
{
    const check_test tests[] = {TEST(small_products_of_every_size), TEST(products_around_panels_and_steps),
                                TEST(products_of_every_count_of_rows), TEST(products_into_any_place_of_a_line),
                                TEST(products_of_a_few_rows_or_columns), TEST(products_of_a_few_rows_in_place),
                                TEST(products_of_short_operands), TEST(nothing_to_sum_leaves_zero_or_what_was),
                                TEST(extremes_of_i8)};
    return RUN_TESTS(tests);
}
