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
