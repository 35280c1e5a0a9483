/* pto_matmul_block.h: part of pto_matmul_dtype.h: blocks of c that stay in registers over one step of k. */
#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast", "no-tree-vectorize")
#endif

/* sum[h][w vectors] += a[h][1] b[1][w vectors]. Rows of a lie `lda` apart, from `low` on, and from the 7th on from `high`: addresses of up
   to 12 rows are two bases and three steps, of which three = 3 lda and five = 5 lda. */
PTO_MATMUL_INLINE void PTO_MM(add_word)(PTO_MM(sums) *sum, const PTO_MM_WORD *low, const PTO_MM_WORD *high, int64_t lda, int64_t three,
                                        int64_t five, const PTO_MM_WORD *b, int h, int w)
{
    PTO_MM(words) row[8];
#pragma GCC unroll 8
    for (int j = 0; j < w; ++j)
        row[j] = *(const PTO_MM(words_at) *)(b + j * PTO_MM_LANES);
#pragma GCC unroll 12
    for (int i = 0; i < h; ++i) {
        PTO_MM_WORD x = (i < 6 ? low : high)[i % 6 == 3 ? three : i % 6 == 5 ? five : i % 6 * lda];
#pragma GCC unroll 8
        for (int j = 0; j < w; ++j)
            PTO_MM_STEP(sum[i * w + j], x, row[j]);
    }
}

/* h rows x w vectors of c = a[h][words] b[words][w vectors], from `start` (w vectors for every row) where that is given. Lines of `lists` are
   fetched on the way. */
PTO_MATMUL_INLINE void PTO_MM(block)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_WORD *a, int64_t lda, const PTO_MM_WORD *b,
                                     int64_t ldb, int64_t words, const PTO_MM_SUM *start, int add, const pto_fetch_lines *lists,
                                     int64_t n_lists, int h, int w)
{
    PTO_MM(sums) sum[24];
#pragma GCC unroll 24
    for (int i = 0; i < h * w; ++i)
        if (start)
            sum[i] = *(const PTO_MM(sums_at) *)(start + i % w * PTO_MM_LANES);
        else
            sum[i] = (PTO_MM(sums)){0};
    /* The bases and steps are hidden from the compiler, which would keep a register a row, and move them around; a copy of ldb for each loop,
       which it would else load in each turn, on a port that multiplies. Few rows have one loop, which fetches a line that is there at last:
       each loop takes long to compile. */
    const PTO_MM_WORD *low = a, *high = h > 6 ? a + 6 * lda : a;
    int64_t three = 3 * lda, five = 5 * lda;
    __asm__("" : "+r"(three), "+r"(five));
    for (; words > 0 && (n_lists > 0 || h < PTO_MATMUL_ROWS); --n_lists, ++lists) {
        pto_fetch_lines lines = h < PTO_MATMUL_ROWS && n_lists <= 0 ? pto_fetch_pairs(a, 0, 0, words, words) : *lists;
        int64_t n = PTO_MM_LEAST(lines.n, words), step = ldb;
        __asm__("" : "+r"(step));
        for (words -= n; n > 0; --n, ++low, ++high, b += step) {
            pto_fetch_line(&lines);
            if (h < PTO_MATMUL_ROWS && lines.at_once > 1)
                pto_fetch_line(&lines);
            __asm__("" : "+r"(low), "+r"(high));
            PTO_MM(add_word)(sum, low, high, lda, three, five, b, h, w);
        }
    }
    __asm__("" : "+r"(ldb));
    for (; h == PTO_MATMUL_ROWS && words > 0; --words, ++low, ++high, b += ldb) {
        __asm__("" : "+r"(low), "+r"(high));
        PTO_MM(add_word)(sum, low, high, lda, three, five, b, h, w);
    }
#pragma GCC unroll 12
    for (int i = 0; i < h; ++i)
#pragma GCC unroll 8
        for (int j = 0; j < w; ++j) {
            PTO_MM(sums_at) *to = (PTO_MM(sums_at) *)(c + i * ldc + j * PTO_MM_LANES);
            if (add)
                sum[i * w + j] += *to;
            *to = sum[i * w + j];
        }
}

/* Rows of the next block where m are left. Fewer than four rows wait for their sums: two smaller blocks share what would leave so few. */
PTO_MATMUL_INLINE int64_t PTO_MM(rows_of_block)(int64_t m)
{
#if PTO_MATMUL_ROWS == 12
    if (m < 16 && m > 4 && m != 12)
        return m > 8 ? (m + 1) / 2 : m;
#endif
    return m >= PTO_MATMUL_ROWS ? PTO_MATMUL_ROWS : m >= 4 ? 4 : m >= 2 ? 2 : 1;
}

#define PTO_MM_ROWS_(h)                                                                                              \
    case h:                                                                                                          \
        PTO_MM(block)(c + r * ldc, ldc, a + r * lda, lda, b, ldb, words, start, add, lists, n_lists, h, 2);          \
        break;

/* Two vectors of the rows of c that fill no block of PTO_MATMUL_ROWS; arguments as below. */
PTO_MATMUL_FUNCTION void PTO_MM(last_rows)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_WORD *a, int64_t lda, const PTO_MM_WORD *b,
                                           int64_t ldb, int64_t m, int64_t words, const PTO_MM_SUM *start, int add,
                                           PTO_MM(ahead) *ahead)
{
    for (int64_t r = 0, h; r < m; r += h) {
        pto_fetch_lines lists[3]; /* a, b, c */
        h = PTO_MM(rows_of_block)(m - r);
        const int64_t n_lists = PTO_MM(look_ahead)(ahead, c + r * ldc, ldc, h, words, lists);
        switch (h) {
#if PTO_MATMUL_ROWS == 12
        PTO_MM_ROWS_(8)
        PTO_MM_ROWS_(7)
        PTO_MM_ROWS_(6)
        PTO_MM_ROWS_(5)
#endif
#if PTO_MATMUL_ROWS > 4
        PTO_MM_ROWS_(4)
#endif
        PTO_MM_ROWS_(2)
        PTO_MM_ROWS_(1)
        }
    }
}
#undef PTO_MM_ROWS_

/* Two vectors of every row of c. `ahead`: what to pack and fetch meanwhile, or null. */
PTO_MATMUL_FUNCTION void PTO_MM(panel)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_WORD *a, int64_t lda, const PTO_MM_WORD *b,
                                       int64_t ldb, int64_t m, int64_t words, const PTO_MM_SUM *start, int add,
                                       PTO_MM(ahead) *ahead)
{
    int64_t r = 0;
    for (; PTO_MM(rows_of_block)(m - r) == PTO_MATMUL_ROWS; r += PTO_MATMUL_ROWS) {
        pto_fetch_lines lists[3]; /* a, b, c */
        const int64_t n_lists = PTO_MM(look_ahead)(ahead, c + r * ldc, ldc, PTO_MATMUL_ROWS, words, lists);
        PTO_MM(block)(c + r * ldc, ldc, a + r * lda, lda, b, ldb, words, start, add, lists, n_lists, PTO_MATMUL_ROWS, 2);
    }
    PTO_MM(last_rows)(c + r * ldc, ldc, a + r * lda, lda, b, ldb, m - r, words, start, add, ahead);
}

#ifdef PTO_MM_FEW_ROWS
#define PTO_MM_WIDE_ROWS_(h, w)                                                                                      \
    for (; m == h && j + w * PTO_MM_LANES <= n; j += w * PTO_MM_LANES)                                               \
        PTO_MM(block)(c + j, ldc, a, lda, b + j, ldb, words, 0, add, 0, 0, h, w);

/* 1 to 3 rows: wide blocks hide the latency of the sums. Returns how many columns it did: all but what fills no vector. */
PTO_MATMUL_FUNCTION int64_t PTO_MM(few_rows)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_WORD *a, int64_t lda,
                                             const PTO_MM_WORD *b, int64_t ldb, int64_t m, int64_t n, int64_t words, int add)
{
    int64_t j = 0;
#if PTO_MATMUL_ROWS == 12
    PTO_MM_WIDE_ROWS_(1, 8)
    PTO_MM_WIDE_ROWS_(2, 8)
    PTO_MM_WIDE_ROWS_(3, 8)
#else
    PTO_MM_WIDE_ROWS_(1, 8)
    PTO_MM_WIDE_ROWS_(2, 4)
    PTO_MM_WIDE_ROWS_(3, 4)
#endif
    PTO_MM_WIDE_ROWS_(1, 1)
    PTO_MM_WIDE_ROWS_(2, 1)
    PTO_MM_WIDE_ROWS_(3, 1)
    return j;
}
#undef PTO_MM_WIDE_ROWS_
#endif

#ifdef PTO_MM_BIAS_LEFT
/* start = minus what the bias of the left words adds to the sums of a packed panel. */
PTO_MATMUL_FUNCTION void PTO_MM(unbias)(PTO_MM_SUM *start, const PTO_MM_WORD *panel, int64_t words)
{
    PTO_MM(sums) left = {0}, right = {0};
    for (int64_t p = 0; p < words; ++p) {
        const PTO_MM(words_at) *row = (const PTO_MM(words_at) *)panel + 2 * p;
        PTO_MM_STEP(left, PTO_MM_BIAS_LEFT, row[0]);
        PTO_MM_STEP(right, PTO_MM_BIAS_LEFT, row[1]);
    }
    ((PTO_MM(sums) *)start)[0] = -left, ((PTO_MM(sums) *)start)[1] = -right;
}
#endif

#if !defined(__clang__)
#pragma GCC pop_options
#endif
