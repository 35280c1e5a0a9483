/* Moves, orders and picks of elements against the plainest code for each, on memory of exactly the size that is needed. */
#include "check.h"
#include "pto_index.h"
#include "pto_move.h"
#include "pto_sort.h"

static void *exactly(int64_t n_bytes)      /* sanitizers see the first byte behind it */
{
    unsigned char *memory = malloc((size_t)(n_bytes ? n_bytes : 1));
    for (int64_t i = 0; i < n_bytes; i++)
        memory[i] = (unsigned char)pick(0, 255);
    return memory;
}

/* ---- blocks ---- */

static void blocks_land_where_their_steps_say(void)
{
    for (int n = 0; n < CASES(3000); n++) {
        int64_t rows = pick(1, 40), cols = pick(1, 40), by_col = pick(1, 3), turned = pick(0, 1), apart = pick(1, 2);
        int64_t wide = (turned ? rows : cols) * by_col + pick(0, 3), to_row = cols * apart + pick(0, 2);
        int64_t tall = turned ? cols : rows, from_n = (tall - 1) * wide + ((turned ? rows : cols) - 1) * by_col + 1;
        int64_t from_row = turned ? by_col : wide, from_col = turned ? wide : by_col;
        int64_t to_n = (rows - 1) * to_row + (cols - 1) * apart + 1;
        uint32_t *from = exactly(4 * from_n), *to = exactly(4 * to_n);
        const uint32_t *first = from;
        if (pick(0, 3) == 0) {                 /* backwards */
            first = from + from_n - 1;
            from_row = -from_row, from_col = -from_col;
        }
        uint32_t *expected = malloc((size_t)(4 * to_n));
        memcpy(expected, to, (size_t)(4 * to_n));
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < cols; c++)
                expected[r * to_row + c * apart] = first[r * from_row + c * from_col];
        pto_move_32(to, to_row, apart, first, from_row, from_col, rows, cols);
        CHECK(memcmp(to, expected, (size_t)(4 * to_n)) == 0);
        free(from), free(to), free(expected);
    }
}

static void every_width_is_transposed_and_filled(void)
{
#define TURN(bits)                                                                                                   \
    for (int n = 0; n < CASES(200); n++) {                                                                           \
        typedef uint##bits##_t T;                                                                                    \
        int64_t rows = pick(1, 70), cols = pick(1, 70);                                                              \
        T *from = exactly(rows * cols * (int64_t)sizeof(T)), *to = exactly(rows * cols * (int64_t)sizeof(T)), value = (T)pick(0, 1 << 30); \
        pto_move_##bits(to, cols, 1, from, 1, rows, rows, cols);                                                     \
        for (int64_t i = 0; i < rows * cols; i++)                                                                    \
            CHECK(to[i] == from[i % cols * rows + i / cols]);                                                        \
        pto_fill_##bits(to, cols, rows, cols - 1, &value);                                                           \
        for (int64_t i = 0; i < rows * cols; i++)                                                                    \
            CHECK(to[i] == (i % cols < cols - 1 ? value : from[i % cols * rows + i / cols]));                        \
        free(from), free(to);                                                                                        \
    }
    TURN(8)
    TURN(16)
    TURN(32)
    TURN(64)
}

/* ---- order ---- */

static int before(float a, float b, int descending)       /* -1, 0 or 1; a NaN is the largest */
{
    int order = a != a ? (b != b ? 0 : 1) : b != b ? -1 : (a > b) - (a < b);
    return descending ? -order : order;
}

static void rows_are_ordered_and_equal_elements_keep_their_columns(void)
{
    const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 1e-45f};
    for (int n = 0; n < CASES(600); n++) {
        int64_t rows = pick(1, 3), cols = pick(0, 4) ? pick(1, 120) : pick(121, 2000), k = pick(1, cols), step = cols + pick(0, 2);
        int descending = (int)pick(0, 1), kind = (int)pick(0, 2);
        int64_t n_from = (rows - 1) * step + cols;
        float *from = malloc((size_t)(4 * n_from));
        for (int64_t i = 0; i < n_from; i++)
            from[i] = kind == 0 ? special[pick(0, 7)] : kind == 1 ? (float)pick(-3, 3) : (float)pick(-1000000, 1000000) / 64;
        int32_t *to = exactly(4 * rows * k);
        char *work = aligned_alloc(64, (size_t)((16 * cols + 63) / 64 * 64));
        pto_order_f32(to, rows, cols, k, from, step, descending, work);
        for (int64_t r = 0; r < rows; r++) {
            const float *row = from + r * step;
            const int32_t *order = to + r * k;
            for (int64_t i = 0; i < k; i++)
                CHECK(order[i] >= 0 && order[i] < cols);
            for (int64_t i = 1; i < k; i++) {
                int found = before(row[order[i - 1]], row[order[i]], descending);
                CHECK(found < 0 || (found == 0 && order[i - 1] < order[i]));
            }
            int64_t better = 0;                  /* those that come before the last one kept are the others that were kept */
            for (int64_t c = 0; c < cols; c++) {
                int found = before(row[c], row[order[k - 1]], descending);
                better += found < 0 || (found == 0 && c < order[k - 1]);
            }
            CHECK_EQ(better, k - 1);
        }
        free(from), free(to), free(work);
    }
}

static void wide_and_narrow_keys_order_alike(void)
{
    for (int n = 0; n < CASES(200); n++) {
        int64_t cols = pick(1, 300), k = pick(1, cols);
        int8_t *small = exactly(cols);
        int64_t *large = malloc((size_t)(8 * cols));
        for (int64_t c = 0; c < cols; c++)
            large[c] = (int64_t)small[c] * (1LL << 50);
        int32_t *a = exactly(4 * k), *b = exactly(4 * k);
        char *work = aligned_alloc(64, (size_t)((24 * cols + 63) / 64 * 64));
        pto_order_i8(a, 1, cols, k, small, cols, (int)(n & 1), work);
        pto_order_i64(b, 1, cols, k, large, cols, (int)(n & 1), work);
        CHECK(memcmp(a, b, (size_t)(4 * k)) == 0);
        pto_rowarg_i8(a, 1, cols, small, cols, 0), pto_rowarg_i64(b, 1, cols, large, cols, 0);
        CHECK_EQ(a[0], b[0]);
        free(small), free(large), free(a), free(b), free(work);
    }
}

/* ---- place ---- */

static void an_index_outside_is_told_and_nothing_moves(void)
{
    for (int n = 0; n < CASES(2000); n++) {
        int64_t rows = pick(1, 6), cols = pick(1, 20), extent = pick(1, 9), bad = pick(0, 1), adds = pick(0, 1);
        int32_t *index = malloc((size_t)(4 * rows * cols));
        for (int64_t i = 0; i < rows * cols; i++)
            index[i] = (int32_t)pick(0, extent - 1);
        int64_t row = pick(0, rows - 1), col = pick(0, cols - 1);
        if (bad)
            index[row * cols + col] = pick(0, 1) ? (int32_t)extent : -1;
        float *x = malloc((size_t)(4 * rows * extent)), *value = malloc((size_t)(4 * rows * cols));
        for (int64_t i = 0; i < rows * extent; i++)
            x[i] = (float)pick(0, 9);
        for (int64_t i = 0; i < rows * cols; i++)
            value[i] = (float)pick(0, 9);
        float *expected = malloc((size_t)(4 * rows * extent)), *found = exactly(4 * rows * cols);
        memcpy(expected, x, (size_t)(4 * rows * extent));
        pto_fault fault = {0};
        CHECK_EQ(pto_gather_32_i32(found, rows, cols, x, extent, 0, 1, index, cols, 1, extent, &fault), bad);
        for (int64_t i = 0; !bad && i < rows * cols; i++)
            CHECK(found[i] == x[i / cols * extent + index[i]]);
        if (adds)
            CHECK_EQ(pto_scatter_add_f32_i32(x, extent, 0, 1, rows, cols, index, cols, 1, value, cols, 1, extent, &fault), bad);
        else
            CHECK_EQ(pto_scatter_32_i32(x, extent, 0, 1, rows, cols, index, cols, 1, value, cols, 1, extent, &fault), bad);
        for (int64_t i = 0; !bad && i < rows * cols; i++) {
            float *at = expected + i / cols * extent + index[i];
            *at = adds ? *at + value[i] : value[i];
        }
        CHECK(memcmp(x, expected, (size_t)(4 * rows * extent)) == 0);
        if (bad) {
            CHECK_EQ(fault.row, row);
            CHECK_EQ(fault.col, col);
            CHECK_EQ(fault.value, index[row * cols + col]);
            CHECK_EQ(fault.upper, extent - 1);
        }
        free(index), free(x), free(value), free(expected), free(found);
    }
}

static void rows_of_any_layout_are_picked(void)
{
    for (int n = 0; n < CASES(1000); n++) {
        int64_t tall = pick(1, 9), wide = pick(1, 9), rows = pick(1, 9), turned = pick(0, 1);
        int64_t row_step = turned ? 1 : wide, col_step = turned ? tall : 1;
        uint16_t *table = exactly(2 * tall * wide), *found = exactly(2 * rows * wide);
        int64_t *index = malloc((size_t)(8 * rows));
        for (int64_t r = 0; r < rows; r++)
            index[r] = pick(0, tall - 1);
        pto_fault fault = {0};
        CHECK_EQ(pto_gather_16_i64(found, rows, wide, table, 0, col_step, row_step, index, 1, 0, tall, &fault), 0);
        for (int64_t i = 0; i < rows * wide; i++)
            CHECK(found[i] == table[index[i / wide] * row_step + i % wide * col_step]);
        CHECK_EQ(pto_scatter_16_i64(table, 0, col_step, row_step, rows, wide, index, 1, 0, found, wide, 1, tall, &fault), 0);
        for (int64_t i = 0; i < rows * wide; i++)
            CHECK(found[i] == table[index[i / wide] * row_step + i % wide * col_step]);
        CHECK_EQ(pto_columns_outside(0, wide, wide, &fault), 0);
        CHECK_EQ(pto_columns_outside(1, wide, wide, &fault), 1);
        CHECK_EQ(fault.row, -1);
        CHECK_EQ(pto_columns_outside(-1, 1, wide, &fault), 1);
        free(table), free(found), free(index);
    }
}

int main(void)
{
    const check_test tests[] = {
        TEST(blocks_land_where_their_steps_say), TEST(every_width_is_transposed_and_filled),
        TEST(rows_are_ordered_and_equal_elements_keep_their_columns), TEST(wide_and_narrow_keys_order_alike),
        TEST(an_index_outside_is_told_and_nothing_moves), TEST(rows_of_any_layout_are_picked),
    };
    return RUN_TESTS(tests);
}
