/* pto_matmul_pack.h: part of pto_matmul_dtype.h: elements in memory to words, as the blocks read them.

   A line is a row of a or a column of b. Memory holds lines whose k are neighbours, or k whose lines are neighbours; rows of a
   become lines of words, panels of b become words side by side. Where the two differ, blocks of 16 x 16 words are turned; elements
   that are words, where they lie.
   PTO_MM(word)(x, step) makes the word of x[0], x[step], ...; what lies behind k is 0. */

/* to[words] of one line: from[k]. */
PTO_MATMUL_FUNCTION void PTO_MM(pack_line)(PTO_MM_WORD *to, const PTO_MM_ELEMENT *from, int64_t k)
{
    const int64_t whole = k / PTO_MM_PER_WORD;
    for (int64_t p = 0; p < whole; ++p)
        to[p] = PTO_MM(word)(from + p * PTO_MM_PER_WORD, 1);
#if PTO_MM_PER_WORD > 1
    PTO_MM_ELEMENT last[PTO_MM_PER_WORD] = {0};
    for (int64_t p = whole * PTO_MM_PER_WORD; p < k; ++p)
        last[p - whole * PTO_MM_PER_WORD] = from[p];
    if (whole * PTO_MM_PER_WORD < k)
        to[whole] = PTO_MM(word)(last, 1);
#endif
}

/* to[words][lines]: from[k][lines]. */
PTO_MATMUL_FUNCTION void PTO_MM(pack_across)(PTO_MM_WORD *to, int64_t to_step, const PTO_MM_ELEMENT *from, int64_t k_step,
                                             int64_t lines, int64_t k)
{
    int64_t p = 0;
    if (lines == PTO_MM_WIDTH)     /* a loop that is unrolled */
        for (; p + PTO_MM_PER_WORD <= k; p += PTO_MM_PER_WORD, to += to_step, from += PTO_MM_PER_WORD * k_step)
            for (int64_t x = 0; x < PTO_MM_WIDTH; ++x)
                to[x] = PTO_MM(word)(from + x, k_step);
    for (; p + PTO_MM_PER_WORD <= k; p += PTO_MM_PER_WORD, to += to_step, from += PTO_MM_PER_WORD * k_step)
        for (int64_t x = 0; x < lines; ++x)
            to[x] = PTO_MM(word)(from + x, k_step);
#if PTO_MM_PER_WORD > 1
    for (int64_t x = 0; p < k && x < lines; ++x) {
        PTO_MM_ELEMENT last[PTO_MM_PER_WORD] = {0};
        for (int64_t q = p; q < k; ++q)
            last[q - p] = from[x + (q - p) * k_step];
        to[x] = PTO_MM(word)(last, 1);
    }
#endif
}

/* to[c][r] = block[r][c], of a block of up to 16 x 16 words. */
PTO_MATMUL_FUNCTION void PTO_MM(turn)(PTO_MM_WORD *to, int64_t to_step, const PTO_MM_WORD *block, int64_t step, int64_t rows,
                                      int64_t cols)
{
    if (sizeof(PTO_MM_WORD) == 4 && rows == 16 && cols == 16)
        PTO_BLOCK_32((uint32_t *)to, to_step, (const uint32_t *)block, step);
    else
        for (int64_t c = 0; c < cols; ++c)
            for (int64_t r = 0; r < rows; ++r)
                to[c * to_step + r] = block[r * step + c];
}

/* Rows of a: to[rows][words], `step` words from row to row. */
PTO_MATMUL_FUNCTION void PTO_MM(pack_rows)(PTO_MM_WORD *to, int64_t step, const PTO_MM_ELEMENT *from, int64_t row_step,
                                           int64_t k_step, int64_t rows, int64_t k)
{
    if (k_step == 1)
        for (int64_t r = 0; r < rows; ++r)
            PTO_MM(pack_line)(to + r * step, from + r * row_step, k);
    else
        for (int64_t r = 0; r < rows; r += 16)
            for (int64_t p = 0; p < k; p += 16 * PTO_MM_PER_WORD) {
                const int64_t lines = PTO_MM_LEAST(rows - r, 16), depth = PTO_MM_LEAST(k - p, 16 * PTO_MM_PER_WORD);
                const PTO_MM_ELEMENT *at = from + r + p * k_step;
#if PTO_MM_IN_PLACE
                PTO_MM(turn)(to + r * step + p, step, at, k_step, depth, lines);
#else
                PTO_MM_WORD block[16 * 16] __attribute__((aligned(64)));
                PTO_MM(pack_across)(block, 16, at, k_step, lines, depth);
                PTO_MM(turn)(to + r * step + p / PTO_MM_PER_WORD, step, block, 16, PTO_MM_WORDS(depth), lines);
#endif
            }
#ifdef PTO_MM_BIAS_LEFT
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t p = 0; p < PTO_MM_WORDS(k); ++p)
            to[r * step + p] ^= PTO_MM_BIAS_LEFT;
#endif
}

/* A panel of b: to[words][PTO_MM_WIDTH], columns behind `cols` 0. */
PTO_MATMUL_FUNCTION void PTO_MM(pack_panel)(PTO_MM_WORD *to, const PTO_MM_ELEMENT *from, int64_t k_step, int64_t col_step,
                                            int64_t cols, int64_t k)
{
    if (cols < PTO_MM_WIDTH)
        for (int64_t at = 0; at < PTO_MM_WORDS(k) * PTO_MM_WIDTH; ++at)
            to[at] = 0;
    if (col_step == 1) {
        PTO_MM(pack_across)(to, PTO_MM_WIDTH, from, k_step, cols, k);
        return;
    }
    for (int64_t x = 0; x < cols; x += 16)
        for (int64_t p = 0; p < k; p += 16 * PTO_MM_PER_WORD) {
            const int64_t lines = PTO_MM_LEAST(cols - x, 16), depth = PTO_MM_LEAST(k - p, 16 * PTO_MM_PER_WORD);
            const PTO_MM_ELEMENT *at = from + x * col_step + p;
#if PTO_MM_IN_PLACE
            PTO_MM(turn)(to + p * PTO_MM_WIDTH + x, PTO_MM_WIDTH, at, col_step, lines, depth);
#else
            PTO_MM_WORD block[16 * 16] __attribute__((aligned(64)));
            for (int64_t i = 0; i < lines; ++i)
                PTO_MM(pack_line)(block + i * 16, at + i * col_step, depth);
            PTO_MM(turn)(to + p / PTO_MM_PER_WORD * PTO_MM_WIDTH + x, PTO_MM_WIDTH, block, 16, lines, PTO_MM_WORDS(depth));
#endif
        }
}

/* What blocks do beside their sums: they fetch the next panel of b, and pack rows of a for the next step that the block before fetched. */
typedef struct PTO_MM(ahead) {
    const PTO_MM_ELEMENT *b;              /* still to fetch: b[k][cols], `depth_b` of k a block */
    int64_t b_k, b_col, cols, k, depth_b;
    PTO_MM_WORD *row;                     /* where the next rows go, `step` words from row to row */
    const PTO_MM_ELEMENT *a;              /* still to pack: a[n_rows][depth] */
    int64_t a_row, a_k, n_rows, depth, step;
    int64_t rows, fetched_rows;           /* that a block fetches; that were fetched and not packed */
} PTO_MM(ahead);

/* Say which panel is next: b[k][cols], fetched by n_blocks blocks. */
PTO_MATMUL_INLINE void PTO_MM(next_panel)(PTO_MM(ahead) *ahead, const PTO_MM_ELEMENT *b, int64_t b_k, int64_t b_col, int64_t cols,
                                          int64_t k, int64_t n_blocks)
{
    ahead->b = b, ahead->b_k = b_k, ahead->b_col = b_col, ahead->cols = cols, ahead->k = k;
    ahead->depth_b = n_blocks > 0 ? ((k + n_blocks - 1) / n_blocks + 15) / 16 * 16 : 0;
}

/* Say which rows of a are next: a[n_rows][depth], in n_blocks blocks. Returns where their words are when all are packed. */
PTO_MATMUL_INLINE const PTO_MM_WORD *PTO_MM(next_rows)(PTO_MM(ahead) *ahead, PTO_MM_WORD *to, const PTO_MM_ELEMENT *a, int64_t a_row,
                                                       int64_t a_k, int64_t n_rows, int64_t depth, int64_t n_blocks)
{
    const int64_t rows = n_blocks > 0 ? (n_rows + n_blocks - 1) / n_blocks : n_rows;
    ahead->row = to, ahead->a = a, ahead->a_row = a_row, ahead->a_k = a_k, ahead->n_rows = n_rows, ahead->depth = depth;
    ahead->step = (PTO_MM_WORDS(depth) + 15) / 16 * 16 + PTO_MATMUL_PAD;
    ahead->rows = a_k == 1 ? rows : (rows + 15) / 16 * 16, ahead->fetched_rows = 0;
    return to;
}

/* Pack up to n of the next rows. */
PTO_MATMUL_FUNCTION void PTO_MM(pack_next_rows)(PTO_MM(ahead) *ahead, int64_t n)
{
    n = PTO_MM_LEAST(n, ahead->n_rows);
    if (n > 0)
        PTO_MM(pack_rows)(ahead->row, ahead->step, ahead->a, ahead->a_row, ahead->a_k, n, ahead->depth);
    ahead->row += n * ahead->step, ahead->a += n * ahead->a_row, ahead->n_rows -= n;
}

/* Pack before a block of c what was fetched during the last one. Returns how many lists of lines the block fetches. `ahead` may be null. */
PTO_MATMUL_FUNCTION int64_t PTO_MM(look_ahead)(PTO_MM(ahead) *ahead, const PTO_MM_SUM *c, int64_t ldc, int64_t h, int64_t words,
                                               pto_fetch_lines *lists)
{
    int64_t n_lists = 0;
    if (ahead && ahead->n_rows > 0) {
        PTO_MM(pack_next_rows)(ahead, ahead->fetched_rows);
        ahead->fetched_rows = ahead->rows;
        const int64_t n = PTO_MM_LEAST(ahead->n_rows, ahead->rows), along = ahead->a_k == 1;
        const int64_t lines = (ahead->depth * (int64_t)sizeof *ahead->a + 63) / 64;
        if (along && n == 1)
            lists[n_lists++] = pto_fetch_pairs(ahead->a, 64, 128, lines, words);
        else if (along && n == 2)
            lists[n_lists++] = pto_fetch_pairs(ahead->a, ahead->a_row * (int64_t)sizeof *ahead->a, 64, 2 * lines, words);
        else
            pto_fetch(ahead->a, (along ? ahead->a_row : ahead->a_k) * (int64_t)sizeof *ahead->a, along ? n : ahead->depth,
                      (along ? ahead->depth : n) * (int64_t)sizeof *ahead->a);
    }
    if (ahead && ahead->k > 0) {
        const int64_t k = PTO_MM_LEAST(ahead->k, ahead->depth_b), along = ahead->b_k == 1;
        const int64_t step_bytes = (along ? ahead->b_col : ahead->b_k) * (int64_t)sizeof *ahead->b, rows = along ? ahead->cols : k;
        const int64_t row_bytes = (along ? k : ahead->cols) * (int64_t)sizeof *ahead->b;
        const char *const at = (const char *)ahead->b;
        ahead->b += k * ahead->b_k, ahead->k -= k;
        if (row_bytes <= 64 && rows <= 2 * words)
            lists[n_lists++] = pto_fetch_pairs(at, step_bytes, 2 * step_bytes, rows, words);
        else if (row_bytes > 64 && row_bytes <= 128 && rows <= words)
            lists[n_lists++] = pto_fetch_pairs(at + 63, 64, step_bytes, 2 * rows, words);
        else
            pto_fetch(at, step_bytes, rows, row_bytes);
    }
    if (ldc * (int64_t)sizeof *c >= 2048)   /* rows of c that no prefetcher finds */
        lists[n_lists++] = pto_fetch_pairs(c + PTO_MM_LANES - 1, 64, ldc * (int64_t)sizeof *c, 2 * h, words);
    return n_lists;
}
