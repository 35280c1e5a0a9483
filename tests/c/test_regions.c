/* test_regions.c: pto_regions_overlap against sets of bytes. */
#include "check.h"

enum { ARENA = 1 << 16, MIDDLE = ARENA / 2 };

static char arena[ARENA];
static uint8_t mark[ARENA];

static void set_bytes(const pto_arg *arg, uint8_t value)
{
    for (int64_t i = 0; i < arg->extent[0]; i++)
        for (int64_t j = 0; j < arg->extent[1]; j++) {
            char *element = arg->data + (i * arg->stride[0] + j * arg->stride[1]) * arg->elem_bytes;
            memset(mark + (element - arena), value, (size_t)arg->elem_bytes);
        }
}

static bool shares_byte(const pto_arg *a, const pto_arg *b)
{
    bool found = false;
    set_bytes(a, 1);
    for (int64_t i = 0; i < b->extent[0]; i++)
        for (int64_t j = 0; j < b->extent[1]; j++) {
            char *element = b->data + (i * b->stride[0] + j * b->stride[1]) * b->elem_bytes;
            for (int32_t k = 0; k < b->elem_bytes; k++)
                found |= mark[element - arena + k] != 0;
        }
    set_bytes(a, 0);
    return found;
}

static pto_arg random_arg(int64_t spread, int64_t most, int64_t widest_stride)
{
    static const int32_t sizes[] = {1, 2, 4, 8, 3};
    pto_arg arg = {.elem_bytes = sizes[pick(0, 4)]};
    arg.data = arena + MIDDLE + pick(-spread, spread);
    for (int32_t d = 0; d < 2; d++) {
        arg.extent[d] = pick(0, 9) == 0 ? 0 : pick(1, most);
        arg.stride[d] = pick(-widest_stride, widest_stride);
    }
    return arg;
}

static void compare(int64_t cases, int64_t spread, int64_t most, int64_t widest_stride, bool aligned)
{
    int64_t n_overlap = 0;
    for (int64_t i = 0; i < cases; i++) {
        pto_arg a = random_arg(spread, most, widest_stride), b = random_arg(spread, most, widest_stride);
        if (aligned) {
            b.elem_bytes = a.elem_bytes = 4;
            b.stride[0] = a.stride[0];
            a.stride[1] = pick(1, 2);
            b.stride[1] = pick(1, 2);
        }
        bool expected = shares_byte(&a, &b);
        n_overlap += expected;
        CHECK_EQ(pto_regions_overlap(&a, &b, 1 << 20), expected);
        CHECK_EQ(pto_regions_overlap(&b, &a, 1 << 20), expected);
    }
    CHECK(n_overlap > cases / 50 && n_overlap < cases);
}

static void random_boxes_agree_with_byte_sets(void)
{
    compare(CASES(60000), 40, 4, 12, false);
    compare(CASES(20000), 400, 8, 60, false);
    compare(CASES(5000), 3000, 20, 80, false);
}

static void boxes_of_one_pitch_agree_with_byte_sets(void)
{
    compare(CASES(30000), 200, 6, 40, true);
}

static void neighbouring_tiles_do_not_overlap(void)
{
    pto_arg left = {.data = arena, .extent = {8, 16}, .stride = {64, 1}, .elem_bytes = 4}, right = left, below = left;
    right.data += 16 * 4;
    below.data += 8 * 64 * 4;
    CHECK(!pto_regions_overlap(&left, &right, 100));
    CHECK(!pto_regions_overlap(&left, &below, 100));
    right.data -= 1;
    CHECK(pto_regions_overlap(&left, &right, 100));
}

static void empty_boxes_never_overlap(void)
{
    pto_arg full = {.data = arena, .extent = {4, 4}, .stride = {4, 1}, .elem_bytes = 4}, empty = full;
    empty.extent[1] = 0;
    CHECK(!pto_regions_overlap(&full, &empty, 100));
    CHECK(!pto_regions_overlap(&empty, &empty, 100));
}

static void interleaved_columns_do_not_overlap(void)
{
    pto_arg even = {.data = arena, .extent = {1000, 1000}, .stride = {2000, 2}, .elem_bytes = 4}, odd = even;
    odd.data += 4;
    CHECK(!pto_regions_overlap(&even, &odd, 10));
    odd.elem_bytes = 8;
    odd.stride[0] = 1000;
    odd.stride[1] = 1;
    CHECK(pto_regions_overlap(&even, &odd, 10));
}

static void steps_used_up_means_overlap(void)
{
    pto_arg a = {.data = arena, .extent = {900, 900}, .stride = {1009, 14}, .elem_bytes = 1}, b = a;
    b.data += 3;
    b.stride[0] = 1010;
    b.stride[1] = 21;
    CHECK(pto_regions_overlap(&a, &b, 0));
}

static void unreachable_strides_count_as_overlap(void)
{
    pto_arg a = {.data = arena, .extent = {3, 3}, .stride = {INT64_MAX / 2, 1}, .elem_bytes = 8}, b = a;
    b.data += 1000;
    CHECK(pto_regions_overlap(&a, &b, 100));
}

int main(void)
{
    static const check_test tests[] = {
        TEST(random_boxes_agree_with_byte_sets), TEST(boxes_of_one_pitch_agree_with_byte_sets),
        TEST(neighbouring_tiles_do_not_overlap), TEST(empty_boxes_never_overlap),
        TEST(interleaved_columns_do_not_overlap), TEST(steps_used_up_means_overlap),
        TEST(unreachable_strides_count_as_overlap)};
    return RUN_TESTS(tests);
}
