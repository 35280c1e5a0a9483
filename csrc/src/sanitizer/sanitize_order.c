/* sanitize_order.c: does one node come before another, by structure alone?

   Nodes arrive in program order, predecessors first. For each one we keep the nearest node `above` that every way to it goes
   through (its dominator), and the first row `since` from which on all nodes come before it: these are the nodes behind the
   last one that nothing follows yet. To ask whether u comes before v, climb from v to the lowest x above it that is not
   before u: since all ways to v go through x and x is not earlier than u, u comes before v exactly if it is x or comes
   before x. There
     - u == x, or u >= since(x): yes;
     - x has one predecessor, which is earlier than u: no;
     - otherwise ask the same of the predecessors of x.
   Loops in one another, P and P.seq, are settled by the first two: the last is for `after=`, channels and events. There the
   last row found behind a node helps with the next question about it: tokens are taken one behind the other. The answers are
   exact. Rows count from 1; row 0 stands for the start of the program, above everything.
   Source of the jumps: Myers, An applicative random-access stack, 1983. */
#include "sanitize_order.h"

#include <stdlib.h>
#include <string.h>

#include "../collections/array.h"

void pto_order_free(pto_order *o)
{
    void *owned[] = {o->above, o->jump, o->height, o->since, o->open_before, o->open_after, o->begin, o->preds, o->seen, o->stack};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    memset(o, 0, sizeof *o);
}

void pto_order_reset(pto_order *o)
{
    o->n = o->n_preds = 0;
    memset(o->known_first, 0, sizeof o->known_first);
    o->steps = PTO_ORDER_STEPS;
}

static bool reserve(pto_order *o)
{
    int64_t need = o->n + 2, capacity = o->capacity, grown = capacity;
    if (need > capacity) {
#define PTO_GROW_COLUMN(column) (grown = capacity, PTO_RESERVE(o->column, grown, need))
        if (!PTO_GROW_COLUMN(above) || !PTO_GROW_COLUMN(jump) || !PTO_GROW_COLUMN(height) || !PTO_GROW_COLUMN(since) ||
            !PTO_GROW_COLUMN(open_before) || !PTO_GROW_COLUMN(open_after) || !PTO_GROW_COLUMN(seen))
            return false;
#undef PTO_GROW_COLUMN
        memset(o->seen + capacity, 0, (size_t)(grown - capacity) * sizeof *o->seen);
        o->capacity = grown;
    }
    if (!PTO_RESERVE(o->begin, o->begin_capacity, need + 1))
        return false;
    if (o->n == 0) {
        o->above[0] = o->jump[0] = o->height[0] = o->since[0] = o->open_before[0] = o->open_after[0] = 0;
        o->begin[0] = o->begin[1] = 0;
    }
    return true;
}

static int32_t meet(const pto_order *o, int32_t a, int32_t b)      /* the lowest row above both, or one of them */
{
    while (a != b) {
        int32_t *lower = o->height[a] >= o->height[b] ? &a : &b, other = lower == &a ? b : a;
        if (o->height[*lower] > o->height[other])
            *lower = o->height[o->jump[*lower]] >= o->height[other] ? o->jump[*lower] : o->above[*lower];
        else if (o->jump[a] != o->jump[b])
            a = o->jump[a], b = o->jump[b];
        else
            a = o->above[a], b = o->above[b];
    }
    return a;
}

/* The open nodes are a ring through row 0, ascending. */
static void close_node(pto_order *o, int32_t row)
{
    if (o->open_after[row] < 0)
        return;
    o->open_after[o->open_before[row]] = o->open_after[row];
    o->open_before[o->open_after[row]] = o->open_before[row];
    o->open_after[row] = -1;
}

bool pto_order_add(pto_order *o, const int64_t *preds, int64_t n)
{
    if (!reserve(o) || (n > 1 && !PTO_RESERVE(o->preds, o->preds_capacity, o->n_preds + n)))
        return false;
    int32_t row = (int32_t)++o->n, above = n > 0 ? (int32_t)preds[0] + 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t pred = (int32_t)preds[i] + 1;
        close_node(o, pred);
        above = meet(o, above, pred);
        if (n > 1)
            o->preds[o->n_preds++] = pred;
    }
    o->begin[row + 1] = o->n_preds;
    o->above[row] = above;
    o->height[row] = o->height[above] + 1;
    int32_t jump = o->jump[above];
    o->jump[row] = o->height[above] - o->height[jump] == o->height[jump] - o->height[o->jump[jump]] ? o->jump[jump] : above;
    int32_t last_open = o->open_before[0];
    o->since[row] = last_open + 1;
    o->open_before[row] = last_open;
    o->open_after[row] = 0;
    o->open_after[last_open] = row;
    o->open_before[0] = row;
    return true;
}

/* The lowest row above `row`, or itself, that is not before `first`. */
static int32_t climb(const pto_order *o, int32_t row, int32_t first)
{
    for (;;) {
        if (o->jump[row] >= first)
            row = o->jump[row];
        else if (o->above[row] >= first)
            row = o->above[row];
        else
            return row;
    }
}

/* PTO_ORDER_UNKNOWN: the predecessors of row have to be asked. */
static pto_ordered settle(const pto_order *o, int32_t first, int32_t row)
{
    if (row == first || o->since[row] <= first)
        return PTO_ORDER_YES;
    return o->begin[row + 1] - o->begin[row] < 2 ? PTO_ORDER_NO : PTO_ORDER_UNKNOWN;
}

/* Where the predecessors of a row begin that are not before `first`: they ascend. */
static int64_t first_pred(const pto_order *o, int32_t row, int32_t first)
{
    int64_t low = o->begin[row], high = o->begin[row + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (o->preds[middle] < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_surely_before(const pto_order *o, int32_t first, int32_t row)
{
    return first != 0 && first <= row && settle(o, first, climb(o, row, first)) == PTO_ORDER_YES;
}

/* Ask the predecessors. The earliest that is not before `first` is the likeliest to be behind it, so it is asked first. `after`: a
   row known to be behind `first`, 0: none; where one of them is behind that, so is it behind `first`. */
static pto_ordered search(pto_order *o, int32_t first, int32_t row, int32_t after)
{
    if (++o->question == INT32_MAX) {
        memset(o->seen, 0, (size_t)o->capacity * sizeof *o->seen);
        o->question = 1;
    }
    int64_t n = 0;
    if (!PTO_RESERVE(o->stack, o->stack_capacity, 1))
        return PTO_ORDER_UNKNOWN;
    o->stack[n++] = row;
    o->seen[row] = o->question;
    while (n > 0) {
        int32_t at = o->stack[--n];
        for (int64_t i = first_pred(o, at, first); i < o->begin[at + 1]; i++) {
            if (--o->steps < 0)
                return PTO_ORDER_UNKNOWN;
            int32_t next = climb(o, o->preds[i], first);
            pto_ordered known = settle(o, first, next);
            if (known == PTO_ORDER_YES || is_surely_before(o, after, o->preds[i]))
                return PTO_ORDER_YES;
            if (known == PTO_ORDER_NO || o->seen[next] == o->question)
                continue;
            o->seen[next] = o->question;
            if (!PTO_RESERVE(o->stack, o->stack_capacity, n + 1))
                return PTO_ORDER_UNKNOWN;
            o->stack[n++] = next;
        }
    }
    return PTO_ORDER_NO;
}

pto_ordered pto_order_before(pto_order *o, int64_t first_node, int64_t second_node)
{
    if (first_node >= second_node || second_node >= o->n)
        return first_node >= second_node ? PTO_ORDER_NO : PTO_ORDER_UNKNOWN;
    int32_t first = (int32_t)first_node + 1, second = (int32_t)second_node + 1, row = climb(o, second, first);
    pto_ordered known = settle(o, first, row);
    if (known != PTO_ORDER_UNKNOWN)
        return known;
    int32_t slot = first & (PTO_ORDER_KNOWN - 1), after = o->known_first[slot] == first ? o->known_after[slot] : 0;
    known = is_surely_before(o, after, second) ? PTO_ORDER_YES : search(o, first, row, after);
    if (known == PTO_ORDER_YES) {
        o->known_first[slot] = first;
        o->known_after[slot] = second;
    }
    return known;
}
