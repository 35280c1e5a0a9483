/* pto_matmul_dtype.h: pto_matmul_<dtype>, once for each dtype that pto_matmul_{float,half,int}.h describe (no include guard).

   PTO_MM_DTYPE      its name                      PTO_MM_ELEMENT   an element of a and b in memory
   PTO_MM_SUM        an element of c               PTO_MM_WORD      what a lane of a panel holds, as wide as a sum
   PTO_MM_PER_WORD   elements of k in a word       PTO_MM_IN_PLACE  1: an element is a word
   PTO_MM_STEP(sum, x, row)   sum += x * row, a word by a vector of words
   PTO_MM(word)(x, step)      the word of x[0], x[step], ... */
typedef PTO_MM_SUM PTO_MM(sums) __attribute__((vector_size(PTO_VECTOR_BYTES)));
typedef PTO_MM_SUM PTO_MM(sums_at) __attribute__((vector_size(PTO_VECTOR_BYTES), aligned(sizeof(PTO_MM_SUM)), may_alias));
typedef PTO_MM_WORD PTO_MM(words) __attribute__((vector_size(PTO_VECTOR_BYTES)));
typedef PTO_MM_WORD PTO_MM(words_at) __attribute__((vector_size(PTO_VECTOR_BYTES), aligned(sizeof(PTO_MM_WORD)), may_alias));

#if defined(PTO_USES_FEW_ROWS) && PTO_MM_IN_PLACE
#define PTO_MM_FEW_ROWS
#endif
#define PTO_MM_LANES ((int64_t)(PTO_VECTOR_BYTES / sizeof(PTO_MM_SUM)))
#define PTO_MM_WIDTH (2 * PTO_MM_LANES)
#define PTO_MM_WORDS(k) (((k) + PTO_MM_PER_WORD - 1) / PTO_MM_PER_WORD)
#define PTO_MM_LEAST(a, b) ((a) < (b) ? (a) : (b))

#include "pto_matmul_pack.h"
#include "pto_matmul_block.h"

/* Whether h rows of a are read where they lie: packing costs a copy, and pays where rows fall on the same cache set. */
PTO_MATMUL_INLINE int PTO_MM(rows_in_place)(int64_t row_step, int64_t k_step, int64_t h, int64_t n)
{
    const int64_t bytes = row_step * (int64_t)sizeof(PTO_MM_WORD);
    return PTO_MM_IN_PLACE && k_step == 1 && (h < PTO_MATMUL_ROWS || n <= PTO_MM_WIDTH || bytes % 2048 != 0);
}

/* Whether rows lie so far apart that no prefetcher finds the next. */
PTO_MATMUL_INLINE int PTO_MM(far_apart)(int64_t step)
{
    const int64_t bytes = step * (int64_t)sizeof(PTO_MM_WORD);
    return bytes < 0 || bytes >= 2048;
}

/* Whether panels of b are read where they lie: packing pays for two blocks of rows or more, where rows of b are far apart. */
PTO_MATMUL_INLINE int PTO_MM(panels_in_place)(int64_t k_step, int64_t col_step, int64_t h)
{
    return PTO_MM_IN_PLACE && col_step == 1 && (h <= PTO_MATMUL_ROWS || !PTO_MM(far_apart)(k_step));
}

/* How many columns of c lie before the first vector of c that begins at a multiple of its size. Panels begin behind these columns: a vector
   in two lines of cache would keep blocks waiting. The last panel holds the columns that are left at both ends of c. */
PTO_MATMUL_INLINE int64_t PTO_MM(before_vector)(const PTO_MM_SUM *c, int64_t c_row, int64_t c_col, int64_t b_col, int64_t n)
{
    const int64_t lanes = PTO_VECTOR_BYTES / (int64_t)sizeof *c, behind = (int64_t)((uintptr_t)c % PTO_VECTOR_BYTES / sizeof *c);
    return c_col == 1 && b_col == 1 && behind && c_row % lanes == 0 && n % PTO_MM_WIDTH == 0 ? lanes - behind : 0;
}

/* to[m][n] = sums[m][n], or += */
PTO_MATMUL_FUNCTION void PTO_MM(keep)(PTO_MM_SUM *to, int64_t row, int64_t col, const PTO_MM_SUM *sums, int64_t m, int64_t n, int add)
{
    for (int64_t i = 0; i < m; ++i)
        for (int64_t x = 0; x < n; ++x) {
            PTO_MM_SUM *const at = to + i * row + x * col;
            *at = add ? *at + sums[i * PTO_MM_WIDTH + x] : sums[i * PTO_MM_WIDTH + x];
        }
}

/* Part of a panel that is not whole, or goes to columns that are not neighbours: n columns at c, then n_first at `first`. */
PTO_MATMUL_FUNCTION void PTO_MM(edge)(PTO_MM_SUM *c, PTO_MM_SUM *first, int64_t c_row, int64_t c_col, const PTO_MM_WORD *a, int64_t lda,
                                      const PTO_MM_WORD *b, int64_t ldb, int64_t m, int64_t n, int64_t n_first, int64_t words,
                                      const PTO_MM_SUM *start, int add)
{
    for (int64_t r = 0; r < m; r += PTO_MATMUL_ROWS) {
        PTO_MM_SUM sums[PTO_MATMUL_ROWS * PTO_MM_WIDTH] __attribute__((aligned(PTO_VECTOR_BYTES)));
        const int64_t h = PTO_MM_LEAST(m - r, PTO_MATMUL_ROWS);
        PTO_MM(panel)(sums, PTO_MM_WIDTH, a + r * lda, lda, b, ldb, h, words, start, 0, 0);
        PTO_MM(keep)(c + r * c_row, c_row, c_col, sums, h, n, add);
        PTO_MM(keep)(first + r * c_row, c_row, c_col, sums + n, h, n_first, add);
    }
}

/* One step of k for some rows: `left` holds their words, b is packed panel by panel into `packed`, or read in place. `ahead`: fetches
   the next panel, that of the next step too. `zeros`: where not null, the words of one more row. */
PTO_MATMUL_FUNCTION void PTO_MM(columns)(PTO_MM_SUM *c, int64_t c_row, int64_t c_col, const PTO_MM_WORD *left, int64_t left_step,
                                         const PTO_MM_ELEMENT *b, int64_t b_k, int64_t b_col, int64_t h, int64_t n,
                                         int64_t depth, int64_t next_depth, int add, PTO_MM_WORD *packed, PTO_MM(ahead) *ahead,
                                         const PTO_MM_WORD *zeros)
{
    const int64_t words = PTO_MM_WORDS(depth), n_blocks = (h + PTO_MATMUL_ROWS - 1) / PTO_MATMUL_ROWS;
    const int64_t in_place = PTO_MM(panels_in_place)(b_k, b_col, h) ? n / PTO_MM_WIDTH * PTO_MM_WIDTH : 0;   /* columns */
#ifndef PTO_MM_CAREFUL
    const int64_t before = in_place > 0 ? 0 : PTO_MM(before_vector)(c, c_row, c_col, b_col, n);
#else
    const int64_t before = 0;
    uint32_t top = 0;
    for (int64_t r = 0; r < h; ++r) {
        const uint32_t of_row = PTO_MM(top)(left + r * left_step, words);
        top = of_row > top ? of_row : top;
    }
#endif
    for (int64_t j = before; j < n; j += PTO_MM_WIDTH) {
        const int64_t width = PTO_MM_LEAST(n - j, PTO_MM_WIDTH), step = j < in_place ? b_k : PTO_MM_WIDTH;
        const int64_t n_first = before > 0 && width < PTO_MM_WIDTH ? before : 0;
        const PTO_MM_WORD *panel = (const PTO_MM_WORD *)b + j;
        if (j >= in_place) {
            PTO_MM(pack_panel)(packed, b + j * b_col, b_k, b_col, width, depth);
            PTO_MM(pack_across)(packed + width, PTO_MM_WIDTH, b, b_k, n_first, depth);
            panel = packed;
        }
        const int64_t next = j + width < n ? j + width : before;   /* or the first of the next step of k */
        if ((next > j || next_depth > 0) && (next >= in_place || PTO_MM(far_apart)(b_k)))
            PTO_MM(next_panel)(ahead, b + next * b_col + (next > j ? 0 : depth * b_k), b_k, b_col, PTO_MM_LEAST(n - next, PTO_MM_WIDTH),
                               next > j ? depth : next_depth, n_blocks);
        PTO_MM_SUM *to = c + j * c_col;
#ifdef PTO_MM_BIAS_LEFT
        PTO_MM_SUM start[PTO_MM_WIDTH] __attribute__((aligned(PTO_VECTOR_BYTES)));
        PTO_MM(unbias)(start, panel, words);
#else
        const PTO_MM_SUM *start = 0;
#endif
#ifdef PTO_MM_CAREFUL
        if (top + PTO_MM(top)(panel, words * PTO_MM_WIDTH) > PTO_MM_TOP) {
            PTO_MM(careful)(to, c_row, c_col, left, left_step, panel, step, h, width, words, add);
            if (zeros)
                PTO_MM(careful)(to + h * c_row, c_row, c_col, zeros, 0, panel, step, 1, width, words, add);
            continue;
        }
#endif
        if (width == PTO_MM_WIDTH && c_col == 1)
            PTO_MM(panel)(to, c_row, left, left_step, panel, step, h, words, start, add, ahead);
        else
            PTO_MM(edge)(to, c, c_row, c_col, left, left_step, panel, step, h, width, n_first, words, start, add);
        if (zeros)
            PTO_MM(edge)(to + h * c_row, c + h * c_row, c_row, c_col, zeros, 0, panel, step, 1, width, n_first, words, start, add);
    }
}

/* c[i * c_row + j * c_col] = the sum over p of a[i * a_row + p * a_k] b[p * b_k + j * b_col]; `zeros`: as above, for row m. */
PTO_MATMUL_FUNCTION void PTO_MM(product)(PTO_MM_SUM *c, int64_t c_row, int64_t c_col, const PTO_MM_ELEMENT *a, int64_t a_row,
                                         int64_t a_k, const PTO_MM_ELEMENT *b, int64_t b_k, int64_t b_col, int64_t m, int64_t n,
                                         int64_t k, int flags, char *pack, const PTO_MM_WORD *zeros)
{
    enum { DEPTH = PTO_MATMUL_WORDS * PTO_MM_PER_WORD };
    const int64_t n_chunks = m > PTO_MATMUL_CHUNK ? (m + PTO_MATMUL_CHUNK - 1) / PTO_MATMUL_CHUNK : 1;
    const int64_t most_words = PTO_MM_LEAST(PTO_MM_WORDS(k), PTO_MATMUL_WORDS), most_rows = (m + n_chunks - 1) / n_chunks;
    const int64_t rows_words = most_rows * ((most_words + 15) / 16 * 16 + PTO_MATMUL_PAD);
    const int in_place = PTO_MM(rows_in_place)(a_row, a_k, most_rows, n);
    PTO_MM_WORD *const panel = (PTO_MM_WORD *)pack, *const rows = panel + most_words * PTO_MM_WIDTH;
    PTO_MM(ahead) ahead = {0};
    const PTO_MM_WORD *packed = 0;     /* rows of this step */
    for (int64_t chunk = 0; chunk < n_chunks; ++chunk) {
        const int64_t r = m * chunk / n_chunks, end = m * (chunk + 1) / n_chunks, h = end - r;
        for (int64_t p = 0; p < k; p += DEPTH) {
            const int64_t depth = PTO_MM_LEAST(k - p, DEPTH);
            const int add = (flags & PTO_MATMUL_ACCUMULATE) || p > 0;
            const PTO_MM_ELEMENT *const from_a = a + r * a_row + p * a_k, *const from_b = b + p * b_k;
            const PTO_MM_WORD *left = (const PTO_MM_WORD *)from_a;
            int64_t left_step = a_row, j = 0;
            if (!in_place) {
                left = packed ? packed : PTO_MM(next_rows)(&ahead, rows, from_a, a_row, a_k, h, depth, 1);
                PTO_MM(pack_next_rows)(&ahead, h);
                left_step = ahead.step, packed = 0;
                const int64_t n_blocks = (h + PTO_MATMUL_ROWS - 1) / PTO_MATMUL_ROWS * ((n + PTO_MM_WIDTH - 1) / PTO_MM_WIDTH);
                PTO_MM_WORD *const other = left == rows ? rows + rows_words : rows;
                if (p + DEPTH < k)
                    packed = PTO_MM(next_rows)(&ahead, other, from_a + DEPTH * a_k, a_row, a_k, h, PTO_MM_LEAST(k - p - DEPTH, DEPTH),
                                               n_blocks);
                else if (end < m)
                    packed = PTO_MM(next_rows)(&ahead, other, a + end * a_row, a_row, a_k, m * (chunk + 2) / n_chunks - end,
                                               PTO_MM_LEAST(k, DEPTH), n_blocks);
            }
#ifdef PTO_MM_FEW_ROWS
            if (flags & PTO_MATMUL_FEW_ROWS)
                j = PTO_MM(few_rows)(c + r * c_row, c_row, left, left_step, (const PTO_MM_WORD *)from_b, b_k, h, n,
                                     PTO_MM_WORDS(depth), add);
#endif
            if (j < n)
                PTO_MM(columns)(c + r * c_row + j * c_col, c_row, c_col, left, left_step, from_b + j * b_col, b_k, b_col, h, n - j,
                                depth, PTO_MM_LEAST(k - p - depth, DEPTH), add, panel, &ahead, chunk + 1 < n_chunks ? 0 : zeros);
        }
    }
}

PTO_MATMUL_FUNCTION void PTO_MM(matmul)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_ELEMENT *a, int64_t lda,
                                        const PTO_MM_ELEMENT *b, int64_t ldb, int64_t m, int64_t n, int64_t k, int flags,
                                        char *pack)
{
    const int64_t a_row = flags & PTO_MATMUL_TRANSPOSE_A ? 1 : lda, a_k = flags & PTO_MATMUL_TRANSPOSE_A ? lda : 1;
    const int64_t b_col = flags & PTO_MATMUL_TRANSPOSE_B ? ldb : 1, b_k = flags & PTO_MATMUL_TRANSPOSE_B ? 1 : ldb;
    if (k <= 0 && !(flags & PTO_MATMUL_ACCUMULATE))
        for (int64_t i = 0; i < m; ++i)
            for (int64_t j = 0; j < n; ++j)
                c[i * ldc + j] = 0;
    if (flags & PTO_MATMUL_TURN)   /* c transposed = b transposed x a transposed: the rows of a fill the vectors */
        PTO_MM(product)(c, 1, ldc, b, b_col, b_k, a, a_k, a_row, n, m, k, flags, pack, 0);
    else
        PTO_MM(product)(c, ldc, 1, a, a_row, a_k, b, b_k, b_col, m, n, k, flags, pack, 0);
}

#ifdef PTO_USES_SHORT_ROWS
/* Only `rows` rows of a are there, the others count as 0: one row of zeros is multiplied for all of them. Not for PTO_MATMUL_ACCUMULATE,
   PTO_MATMUL_TRANSPOSE_A or PTO_MATMUL_TURN. */
PTO_MATMUL_FUNCTION void PTO_MM(matmul_short)(PTO_MM_SUM *c, int64_t ldc, const PTO_MM_ELEMENT *a, int64_t lda,
                                              const PTO_MM_ELEMENT *b, int64_t ldb, int64_t rows, int64_t m, int64_t n, int64_t k,
                                              int flags, char *pack)
{
    PTO_MM_WORD zeros[PTO_MATMUL_WORDS];
    for (int p = 0; p < PTO_MATMUL_WORDS; ++p)
#ifdef PTO_MM_BIAS_LEFT
        zeros[p] = PTO_MM_BIAS_LEFT;
#else
        zeros[p] = 0;
#endif
    rows = rows < 0 ? 0 : PTO_MM_LEAST(rows, m);
    const int64_t b_col = flags & PTO_MATMUL_TRANSPOSE_B ? ldb : 1, b_k = flags & PTO_MATMUL_TRANSPOSE_B ? 1 : ldb;
    PTO_MM(product)(c, ldc, 1, a, lda, 1, b, b_k, b_col, rows, n, k, flags, pack, rows < m ? zeros : 0);
    for (int64_t i = rows + 1; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
            c[i * ldc + j] = c[rows * ldc + j];
}
#endif

#undef PTO_MM_DTYPE
#undef PTO_MM_ELEMENT
#undef PTO_MM_SUM
#undef PTO_MM_WORD
#undef PTO_MM_PER_WORD
#undef PTO_MM_IN_PLACE
#undef PTO_MM_STEP
#undef PTO_MM_BIAS_LEFT
#undef PTO_MM_CAREFUL
#undef PTO_MM_TOP
#undef PTO_MM_FEW_ROWS
#undef PTO_MM_LANES
#undef PTO_MM_WIDTH
#undef PTO_MM_WORDS
#undef PTO_MM_LEAST
