/* test_finite.c: which elements a check of check_finite=True lets pass, and which it names. */
#include <math.h>

#include "check.h"
#include "pto_check.h"

enum { ROWS = 3, COLS = 5 };

static double value_of(int64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static pto_source of_element(const void *data, pto_float kind, int64_t by_row, int64_t by_col)
{
    return (pto_source){data, kind, by_row, by_col, 1, 0, 1, 0};
}

static void finite_tiles_of_every_kind_pass(void)
{
    uint16_t halves[ROWS * COLS] = {0x7bff, 0xfbff, 0x0001, 0x8000};
    float singles[ROWS * COLS] = {3.4e38f, -3.4e38f, 1e-45f};
    double doubles[ROWS * COLS] = {1e308, -1e308, 4e-324};
    pto_context context = {0};
    CHECK(!pto_check_finite(&context, halves, PTO_FLOAT_F16, COLS, ROWS, COLS, 0, NULL));
    halves[0] = 0x7f7f;
    halves[1] = 0xff7f;
    CHECK(!pto_check_finite(&context, halves, PTO_FLOAT_BF16, COLS, ROWS, COLS, 0, NULL));
    CHECK(!pto_check_finite(&context, singles, PTO_FLOAT_F32, COLS, ROWS, COLS, 0, NULL));
    CHECK(!pto_check_finite(&context, doubles, PTO_FLOAT_F64, COLS, ROWS, COLS, 0, NULL));
    uint8_t bytes[ROWS * COLS] = {0x7e, 0xfe, 0x7c, 0x01};
    CHECK(!pto_check_finite(&context, bytes, PTO_FLOAT_FP8E4M3, COLS, ROWS, COLS, 0, NULL));
    CHECK(pto_check_finite(&context, bytes, PTO_FLOAT_FP8E5M2, COLS, ROWS, COLS, 0, NULL) && context.fault.col == 0);
    CHECK(pto_widened(bytes, PTO_FLOAT_FP8E4M3, 1) == -448 && pto_widened(bytes, PTO_FLOAT_FP8E4M3, 3) == 0x1p-9);
    CHECK(pto_widened(bytes, PTO_FLOAT_FP8E5M2, 2) == INFINITY && pto_widened(bytes, PTO_FLOAT_FP8E5M2, 3) == 0x1p-16);
    bytes[2] = 0xff;
    CHECK(pto_check_finite(&context, bytes, PTO_FLOAT_FP8E4M3, COLS, ROWS, COLS, 0, NULL) && context.fault.col == 2);
}

static void the_first_element_is_named_row_by_row(void)
{
    float tile[ROWS * 8];              /* a step of 8: what stands between rows is not looked at */
    for (int64_t i = 0; i < ROWS * 8; i++)
        tile[i] = i % 8 < COLS ? 1 : NAN;
    pto_context context = {0};
    CHECK(!pto_check_finite(&context, tile, PTO_FLOAT_F32, 8, ROWS, COLS, 0, NULL));
    tile[1 * 8 + 4] = -INFINITY;
    tile[2 * 8 + 0] = NAN;
    CHECK(pto_check_finite(&context, tile, PTO_FLOAT_F32, 8, ROWS, COLS, 0, NULL));
    CHECK_EQ(context.fault.row, 1);
    CHECK_EQ(context.fault.col, 4);
    CHECK(value_of(context.fault.value) == -INFINITY);
}

static void halves_are_widened(void)
{
    uint16_t made[2] = {0x3c00, 0x7c00}, from[2] = {0x3c00, 0x7bff}, tiny[2] = {0, 0x8001};
    pto_source sources[2] = {of_element(from, PTO_FLOAT_F16, 0, 1), of_element(tiny, PTO_FLOAT_F16, 0, 1)};
    pto_context context = {0};
    CHECK(pto_check_finite(&context, made, PTO_FLOAT_F16, 2, 1, 2, 2, sources));
    CHECK_EQ(context.fault.col, 1);
    CHECK(value_of(context.fault.value) == INFINITY);
    CHECK(value_of(context.fault.lower) == 65504);
    CHECK(value_of(context.fault.upper) == -ldexp(1, -24));
    made[1] = 0x7e00;
    CHECK(pto_check_finite(&context, made, PTO_FLOAT_F16, 2, 1, 2, 2, sources));
    CHECK(isnan(value_of(context.fault.value)));
    uint16_t brain[1] = {0x7fc0}, brain_from[1] = {0xc040};
    CHECK(pto_check_finite(&context, brain, PTO_FLOAT_BF16, 1, 1, 1, 1, (pto_source[]){of_element(brain_from, PTO_FLOAT_BF16, 0, 0)}));
    CHECK(isnan(value_of(context.fault.value)));
    CHECK(value_of(context.fault.lower) == -3);
}

static void what_explains_and_what_does_not(void)
{
    double nan = NAN, infinity = INFINITY, one = 1;
    float made[1] = {NAN}, with_nan[1] = {NAN}, with_infinity[1] = {-INFINITY};
    pto_context context = {0};
    pto_source number = of_element(&nan, PTO_FLOAT_NUMBER, 0, 0);
    pto_source tile_nan = of_element(with_nan, PTO_FLOAT_F32, 0, 0), tile_infinity = of_element(with_infinity, PTO_FLOAT_F32, 0, 0);
    CHECK(pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &number));           /* given as a number: no excuse */
    CHECK(pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &tile_infinity));    /* inf - inf */
    CHECK(!pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &tile_nan));
    made[0] = INFINITY;
    CHECK(!pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &tile_infinity));
    CHECK(!pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &tile_nan));
    number.data = &infinity;
    CHECK(!pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &number));
    number.data = &one;
    CHECK(pto_check_finite(&context, made, PTO_FLOAT_F32, 1, 1, 1, 1, &number));
    CHECK(value_of(context.fault.lower) == 1);
}

static void a_source_reaches_its_row_or_column_only(void)
{
    float operand[ROWS * COLS], row_sums[ROWS] = {0}, column_sums[COLS] = {0};
    for (int64_t i = 0; i < ROWS * COLS; i++)
        operand[i] = 1;
    operand[1 * COLS + 2] = INFINITY;
    pto_source rows = {operand, PTO_FLOAT_F32, COLS, 0, COLS, 1, 1, 0}, columns = {operand, PTO_FLOAT_F32, 0, 1, ROWS, COLS, 1, 0};
    for (int64_t r = 0; r < ROWS; r++) {
        pto_context context = {0};
        row_sums[r] = INFINITY;
        CHECK_EQ(pto_check_finite(&context, row_sums, PTO_FLOAT_F32, 1, ROWS, 1, 1, &rows), r != 1);
        CHECK_EQ(context.fault.row, r != 1 ? r : 0);
        row_sums[r] = 0;
    }
    for (int64_t c = 0; c < COLS; c++) {
        pto_context context = {0};
        column_sums[c] = INFINITY;
        CHECK_EQ(pto_check_finite(&context, column_sums, PTO_FLOAT_F32, COLS, 1, COLS, 1, &columns), c != 2);
        CHECK_EQ(context.fault.col, c != 2 ? c : 0);
        column_sums[c] = 0;
    }
}

int main(void)
{
    const check_test tests[] = {
        TEST(finite_tiles_of_every_kind_pass), TEST(the_first_element_is_named_row_by_row), TEST(halves_are_widened),
        TEST(what_explains_and_what_does_not), TEST(a_source_reaches_its_row_or_column_only),
    };
    return RUN_TESTS(tests);
}
