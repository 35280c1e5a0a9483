/* regions.c: do two strided boxes share a byte?

   Both boxes are sets lo + sum(stride * x) + u. They meet when sum(a.stride * x) - sum(b.stride * y) lies in an interval
   made by the distance of the bases and the two widths. Counting y down instead of up makes every coefficient positive,
   so the question is a bounded subset-sum: does sum(c * z), 0 <= z <= last, hit [lo, hi]? Equal coefficients merge, a
   coefficient no larger than the interval is folded into it, and what is left is searched with interval and gcd cuts.
   A tile of a row-major tensor against another of the same pitch leaves one coefficient, which needs no search. */
#include "regions.h"

#include <string.h>

#define PTO_MAX_TERMS (2 * PTO_RANK)

typedef struct term {
    int64_t c;
    int64_t last;
} term;

typedef struct search {
    term term[PTO_MAX_TERMS];          /* c falling */
    int64_t rest[PTO_MAX_TERMS + 1];   /* largest sum of the terms from here on */
    int64_t gcd[PTO_MAX_TERMS + 1];    /* of the terms from here on */
    int32_t n;
    int64_t steps;
} search;

/* Remove the dimensions that add no gap: dense ones go into width, and a stride that continues the next one's
   progression merges with it. Both leave the byte set as it was. */
static void fold_dense(pto_box *box)
{
    while (box->n_dims > 0) {
        int64_t i = box->n_dims - 1;
        if (box->stride[i] <= box->width) {
            box->width += box->stride[i] * (box->count[i] - 1);
            box->n_dims--;
            continue;
        }
        if (i == 0)
            return;
        int64_t outer = box->stride[i - 1], inner = box->stride[i];
        if (outer % inner != 0 || outer / inner > box->count[i])
            return;
        box->count[i - 1] = outer / inner * (box->count[i - 1] - 1) + box->count[i];
        box->stride[i - 1] = inner;
        box->n_dims--;
    }
}

pto_box_state pto_box_of(const pto_arg *arg, pto_box *out)
{
    out->lo = out->hi = (int64_t)(intptr_t)arg->data;
    out->width = arg->elem_bytes;
    out->n_dims = 0;
    for (int32_t d = 0; d < PTO_RANK; d++)
        if (arg->extent[d] <= 0)
            return PTO_BOX_EMPTY;
    if (arg->elem_bytes <= 0 || out->lo > PTO_FAR || out->lo < -PTO_FAR)
        return PTO_BOX_INVALID;

    int64_t total = 0;
    for (int32_t d = 0; d < PTO_RANK; d++) {
        int64_t count = arg->extent[d], stride, reach;
        if (count == 1 || arg->stride[d] == 0)
            continue;
        if (__builtin_mul_overflow(arg->stride[d], (int64_t)arg->elem_bytes, &stride) ||
            __builtin_mul_overflow(stride, count - 1, &reach) || reach > PTO_FAR / PTO_RANK ||
            reach < -(PTO_FAR / PTO_RANK))
            return PTO_BOX_INVALID;
        if (stride < 0) {
            out->lo += reach;
            stride = -stride;
            reach = -reach;
        }
        total += reach;
        int64_t at = out->n_dims++;
        for (; at > 0 && out->stride[at - 1] < stride; at--) {
            out->stride[at] = out->stride[at - 1];
            out->count[at] = out->count[at - 1];
        }
        out->stride[at] = stride;
        out->count[at] = count;
    }
    out->hi = out->lo + total + out->width;
    fold_dense(out);
    return PTO_BOX_OK;
}

static void add_term(search *s, int64_t c, int64_t last)
{
    int32_t at = 0;
    while (at < s->n && s->term[at].c > c)
        at++;
    if (at < s->n && s->term[at].c == c) {
        s->term[at].last += last;
        return;
    }
    for (int32_t i = s->n++; i > at; i--)
        s->term[i] = s->term[i - 1];
    s->term[at] = (term){c, last};
}

static int64_t gcd_of(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Can the terms from `from` on sum to something in [lo, hi]? True as well when the steps are used up. */
static bool hits(search *s, int32_t from, int64_t lo, int64_t hi)
{
    int64_t most = s->rest[from];
    if (hi < 0 || lo > most)
        return false;
    if (lo <= 0 || hi >= most)
        return true;            /* all zero, or all at their last, lands inside */
    if (hi / s->gcd[from] * s->gcd[from] < lo)
        return false;
    if (from == s->n - 1)
        return true;            /* one coefficient: the gcd test is the exact one */
    int64_t c = s->term[from].c, below = s->rest[from + 1];
    int64_t z = lo > below ? (lo - below + c - 1) / c : 0;
    int64_t z_last = hi / c < s->term[from].last ? hi / c : s->term[from].last;
    for (; z <= z_last; z++) {
        if (--s->steps < 0 || hits(s, from + 1, lo - c * z, hi - c * z))
            return true;
    }
    return false;
}

bool pto_box_overlap(const pto_box *a, const pto_box *b, int64_t max_steps)
{
    bool is_exact;
    return pto_box_meets(a, b, max_steps, &is_exact);
}

bool pto_box_meets(const pto_box *a, const pto_box *b, int64_t max_steps, bool *is_exact)
{
    *is_exact = true;
    if (a->lo >= b->hi || b->lo >= a->hi)
        return false;
    if (a->n_dims == 0 && b->n_dims == 0)
        return true;

    if (a->n_dims == 1 && b->n_dims == 1 && a->stride[0] == b->stride[0]) {        /* one coefficient: the tiles of one tensor */
        int64_t c = a->stride[0], down = b->lo - a->lo + c * (b->count[0] - 1);
        return (down + b->width - 1) / c * c > down - a->width;
    }

    search s;
    s.n = 0;
    s.steps = max_steps;
    int64_t shift = b->lo - a->lo;
    for (int64_t i = 0; i < a->n_dims; i++)
        add_term(&s, a->stride[i], a->count[i] - 1);
    for (int64_t i = 0; i < b->n_dims; i++) {
        add_term(&s, b->stride[i], b->count[i] - 1);
        shift += b->stride[i] * (b->count[i] - 1);
    }
    int64_t lo = shift - (a->width - 1), hi = shift + (b->width - 1);
    while (s.n > 0 && s.term[s.n - 1].c <= hi - lo + 1) {
        s.n--;
        lo -= s.term[s.n].c * s.term[s.n].last;
    }
    s.rest[s.n] = 0;
    s.gcd[s.n] = 0;
    for (int32_t i = s.n - 1; i >= 0; i--) {
        s.rest[i] = s.rest[i + 1] + s.term[i].c * s.term[i].last;
        s.gcd[i] = gcd_of(s.term[i].c, s.gcd[i + 1]);
    }
    bool meets = hits(&s, 0, lo, hi);
    *is_exact = s.steps >= 0;
    return meets;
}

/* Write inner's base as a position in outer's grid, then ask that each of inner's dimensions runs along one of outer's. */
bool pto_box_covers(const pto_box *outer, const pto_box *inner)
{
    if (inner->lo < outer->lo || inner->hi > outer->hi)
        return false;
    int64_t offset = inner->lo - outer->lo, matched = 0;
    for (int64_t i = 0; i < outer->n_dims; i++) {
        int64_t at = offset / outer->stride[i], count = 1;
        offset %= outer->stride[i];
        if (matched < inner->n_dims && inner->stride[matched] == outer->stride[i])
            count = inner->count[matched++];
        if (at + count > outer->count[i])
            return false;
    }
    if (matched == inner->n_dims)
        return offset + inner->width <= outer->width;
    /* what is left of inner must fit in one dense run of outer */
    int64_t span = inner->width;
    for (int64_t i = matched; i < inner->n_dims; i++)
        span += inner->stride[i] * (inner->count[i] - 1);
    return offset + span <= outer->width;
}

int32_t pto_regions_overlap(const pto_arg *a, const pto_arg *b, int64_t max_steps)
{
    pto_box box_a, box_b;
    pto_box_state state_a = pto_box_of(a, &box_a), state_b = pto_box_of(b, &box_b);
    if (state_a == PTO_BOX_EMPTY || state_b == PTO_BOX_EMPTY)
        return 0;
    if (state_a == PTO_BOX_INVALID || state_b == PTO_BOX_INVALID)
        return 1;
    return pto_box_overlap(&box_a, &box_b, max_steps);
}
