/* sanitize_bodies.c: run a body of the user's own on copies.

   The copies keep every step between elements; around them, and between them, stands a pattern that no task has written.
   What the body changes there it should not. It runs twice, with other patterns the second time: what differs then depends
   on memory that is not its own, or that nobody wrote, and running it once more for each kind of such memory tells which. */
#include "sanitize_bodies.h"

#include <stdlib.h>
#include <string.h>

#include "../engine/prints.h"
#include "../record/regions.h"
#include "sanitize_memory.h"

#define MARGIN 4096                    /* bytes in front of and behind what is copied */
#define MAX_COPIED (INT64_C(1) << 26)  /* bytes; a body that is bound to more runs as it is */

/* Regions that touch one another are copied together. */
typedef struct cluster {
    int64_t lo, hi;                    /* addresses */
    int64_t offset;                    /* of lo, in the copies */
} cluster;

typedef struct body {
    const pto_watch *w;
    cluster clusters[PTO_MAX_ARGS];
    int64_t n_clusters, bytes;
    pto_arg args[PTO_MAX_ARGS];        /* on work */
    int64_t at[PTO_MAX_ARGS];          /* offset of an argument's first element */
    int64_t of[PTO_MAX_ARGS];          /* its cluster, -1: empty */
} body;

/* What the memory holds that the body has not been given: one pattern for each kind; `only`: of which argument or cluster, -1: all. */
typedef struct patterns {
    int outside, left, unwritten;
    int64_t only;
} patterns;

static void place_clusters(body *b)
{
    const pto_watch *w = b->w;
    for (int64_t i = 0; i < w->n_args; i++) {
        pto_box box;
        b->of[i] = -1;
        if (pto_box_of(&w->args[i], &box) == PTO_BOX_OK)
            b->clusters[b->n_clusters++] = (cluster){.lo = box.lo, .hi = box.hi};
    }
    for (bool merged = true; merged;) {
        merged = false;
        for (int64_t i = 0; i < b->n_clusters; i++)
            for (int64_t j = i + 1; j < b->n_clusters; j++) {
                cluster *a = &b->clusters[i], *other = &b->clusters[j];
                if (a->lo >= other->hi || other->lo >= a->hi)
                    continue;
                a->lo = a->lo < other->lo ? a->lo : other->lo;
                a->hi = a->hi > other->hi ? a->hi : other->hi;
                *other = b->clusters[--b->n_clusters];
                merged = true;
                j--;
            }
    }
    for (int64_t i = 0; i < b->n_clusters; i++) {
        cluster *c = &b->clusters[i];
        c->offset = b->bytes + MARGIN + (c->lo & (PTO_CACHE_LINE - 1));
        b->bytes = (c->offset + c->hi - c->lo + MARGIN + PTO_CACHE_LINE - 1) / PTO_CACHE_LINE * PTO_CACHE_LINE;
    }
    for (int64_t i = 0; i < w->n_args; i++) {
        int64_t address = (int64_t)(intptr_t)w->args[i].data;
        for (int64_t k = 0; k < b->n_clusters; k++)
            if (w->args[i].extent[0] > 0 && w->args[i].extent[1] > 0 && address >= b->clusters[k].lo && address < b->clusters[k].hi) {
                b->of[i] = k;
                b->at[i] = b->clusters[k].offset + address - b->clusters[k].lo;
            }
    }
}

static int64_t offset_of(const body *b, int64_t i, int64_t row, int64_t col)
{
    const pto_arg *a = &b->w->args[i];
    return b->at[i] + (row * a->stride[0] + col * a->stride[1]) * a->elem_bytes;
}

static char *aligned(pto_room *room)
{
    return room->data + (-(uintptr_t)room->data & (PTO_CACHE_LINE - 1));
}

/* ---- what the body is given ---- */

static int chosen(const patterns *p, int pattern, int64_t which)
{
    return p->only < 0 || p->only == which ? pattern : PTO_POISON;
}

/* The second time each byte differs from its neighbours: a body that copies what stands outside to the outside is seen. */
static void fill_outside(char *image, int64_t begin, int64_t n, int pattern)
{
    if (pattern == PTO_POISON)
        memset(image + begin, PTO_POISON, (size_t)n);
    else
        for (int64_t i = begin; i < begin + n; i++)
            image[i] = (char)(uint8_t)(i * 167 + (i >> 8) * 31 + pattern);
}

static void prepare(const body *b, const patterns *p)
{
    const pto_watch *w = b->w;
    char *image = aligned(&w->s->copies.image);
    memset(image, PTO_POISON, (size_t)b->bytes);
    for (int64_t k = 0; k < b->n_clusters; k++) {
        const cluster *c = &b->clusters[k];
        fill_outside(image, c->offset - MARGIN, c->hi - c->lo + 2 * MARGIN, chosen(p, p->outside, k));
    }
    for (int32_t pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < w->n_args; i++) {
            const pto_arg *a = &w->args[i];
            if (b->of[i] < 0 || pto_reads(a) != (pass == 1))
                continue;
            PTO_EACH_ELEMENT(a, row, col) {
                const char *element = pto_element(a, row, col);
                char *to = image + offset_of(b, i, row, col);
                if (pass == 0)
                    memset(to, chosen(p, p->left, i), (size_t)a->elem_bytes);
                else if (pto_is_unwritten(w->shadows[i], element))
                    memset(to, chosen(p, p->unwritten, i), (size_t)a->elem_bytes);
                else
                    memcpy(to, element, (size_t)a->elem_bytes);
            }
        }
    memcpy(aligned(&w->s->copies.work), image, (size_t)b->bytes);
}

static int32_t run(const body *b, bool is_shown)
{
    const pto_watch *w = b->w;
    pto_context *context = &w->worker->context;
    void (*print)(pto_context *, int32_t, const void *, int32_t, int64_t, int64_t, int64_t, int64_t) = context->print;
    char *scratch = aligned(&w->s->copies.scratch) + MARGIN;
    memset(scratch - MARGIN, PTO_POISON, (size_t)(w->kernel->scratch_bytes + 2 * MARGIN));
    if (!is_shown)
        context->print = pto_print_nothing;
    context->fault = (pto_fault){0};
    int32_t code = w->kernel->entry(b->args, w->scalars, scratch, context);
    context->print = print;
    return code;
}

/* ---- what it has done ---- */

static void mark_writable(const body *b)
{
    char *writable = aligned(&b->w->s->copies.writable);
    memset(writable, 0, (size_t)b->bytes);
    for (int64_t i = 0; i < b->w->n_args; i++)
        if (b->of[i] >= 0 && pto_writes(&b->w->args[i]))
            PTO_EACH_ELEMENT(&b->w->args[i], row, col)
                memset(writable + offset_of(b, i, row, col), 1, (size_t)b->w->args[i].elem_bytes);
}

/* Blame an address for a kind of misuse: as row and column of the argument whose region it is nearest to. */
static int32_t blame_address(const body *b, int32_t kind, int64_t offset, bool is_write)
{
    const pto_watch *w = b->w;
    int64_t best = -1, best_far = INT64_MAX;
    for (int64_t i = 0; i < w->n_args; i++) {
        pto_box box;
        if (b->of[i] < 0 || pto_box_of(&w->args[i], &box) != PTO_BOX_OK)
            continue;
        const cluster *c = &b->clusters[b->of[i]];
        int64_t lo = c->offset + box.lo - c->lo, hi = lo + box.hi - box.lo;
        int64_t far = offset < lo ? lo - offset : offset >= hi ? offset - hi + 1 : 0;
        far = far * 2 + (is_write && !pto_writes(&w->args[i]));
        if (far < best_far) {
            best = i;
            best_far = far;
        }
    }
    if (best < 0)
        return pto_misused(w, kind, 0, 0, 0, 0);
    const pto_arg *a = &w->args[best];
    int64_t rest = pto_floor_div(offset - b->at[best], a->elem_bytes), row = 0, step = a->stride[0];
    if (step != 0 && a->extent[0] > 1) {
        row = step > 0 ? pto_floor_div(rest, step) : -pto_floor_div(rest, -step);
        row = row < 0 ? 0 : row >= a->extent[0] ? a->extent[0] - 1 : row;
    }
    rest -= row * step;
    return pto_misused(w, kind, best, row, a->stride[1] == 0 ? rest : rest / a->stride[1], 0);
}

/* The first byte that the body changed and may not; -1: none. */
static int64_t stray_write(const body *b)
{
    const char *image = aligned(&b->w->s->copies.image), *work = aligned(&b->w->s->copies.work);
    const char *writable = aligned(&b->w->s->copies.writable);
    for (int64_t i = 0; i < b->bytes; i++)
        if (image[i] != work[i] && !writable[i])
            return i;
    return -1;
}

static bool is_scratch_whole(const body *b)
{
    const char *scratch = aligned(&b->w->s->copies.scratch);
    for (int64_t i = 0; i < MARGIN; i++)
        if ((uint8_t)scratch[i] != PTO_POISON || (uint8_t)scratch[MARGIN + b->w->kernel->scratch_bytes + i] != PTO_POISON)
            return false;
    return true;
}

/* Was the element left as it was found, now and the first time? Then it held a pattern of ours: what is known differs from none. */
static bool is_left(const body *b, int64_t i, const char *element, int64_t offset)
{
    const pto_watch *w = b->w;
    int32_t bytes = w->args[i].elem_bytes;
    bool had_none = !pto_reads(&w->args[i]) || pto_is_unwritten(w->shadows[i], element);
    return had_none && pto_holds(aligned(&w->s->copies.first) + offset, bytes, PTO_POISON) &&
           memcmp(aligned(&w->s->copies.work) + offset, aligned(&w->s->copies.image) + offset, (size_t)bytes) == 0;
}

static bool gives_the_same(const body *b, int32_t code, int32_t first_code)
{
    const pto_watch *w = b->w;
    const char *work = aligned(&w->s->copies.work), *first = aligned(&w->s->copies.first);
    if (code != first_code)
        return false;
    for (int64_t i = 0; i < w->n_args; i++)
        if (b->of[i] >= 0 && pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                int64_t offset = offset_of(b, i, row, col);
                if (!is_left(b, i, pto_element(&w->args[i], row, col), offset) &&
                    memcmp(work + offset, first + offset, (size_t)w->args[i].elem_bytes) != 0)
                    return false;
            }
    return true;
}

/* Give back what the body stored. `is_known`: that it left what it left. */
static void commit(const body *b, const char *from, bool is_known)
{
    const pto_watch *w = b->w;
    for (int64_t i = 0; i < w->n_args; i++)
        if (b->of[i] >= 0 && pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                char *element = pto_element(&w->args[i], row, col);
                int64_t offset = offset_of(b, i, row, col);
                if (is_known ? is_left(b, i, element, offset)
                             : !pto_reads(&w->args[i]) && pto_holds(from + offset, w->args[i].elem_bytes, PTO_POISON))
                    continue;
                memcpy(element, from + offset, (size_t)w->args[i].elem_bytes);
                pto_set_written(w->shadows[i], element);
            }
}

static bool decides(const body *b, patterns p, int32_t code)
{
    prepare(b, &p);
    return !gives_the_same(b, run(b, false), code);
}

static int32_t first_unwritten(const body *b, int64_t i)
{
    const pto_watch *w = b->w;
    PTO_EACH_ELEMENT(&w->args[i], row, col)
        if (!pto_reads(&w->args[i]) || pto_is_unwritten(w->shadows[i], pto_element(&w->args[i], row, col)))
            return pto_misused(w, PTO_MISUSE_UNWRITTEN, i, row, col, 0);
    return 1;
}

/* Something decides that is none of the body's: find out which memory it is of. */
static int32_t blame(const body *b, int32_t code)
{
    const patterns none = {PTO_POISON, PTO_POISON, PTO_POISON, -1};
    for (int64_t i = 0; i < b->w->n_args; i++) {
        patterns p = none;
        p.unwritten = PTO_POISON_READ;
        p.only = i;
        if (b->of[i] >= 0 && pto_reads(&b->w->args[i]) && decides(b, p, code))
            return first_unwritten(b, i);
    }
    for (int64_t i = 0; i < b->w->n_args; i++) {
        patterns p = none;
        p.left = PTO_POISON_LEFT;
        p.only = i;
        if (b->of[i] >= 0 && !pto_reads(&b->w->args[i]) && decides(b, p, code))
            return first_unwritten(b, i);
    }
    for (int64_t k = 0; k < b->n_clusters; k++) {
        patterns p = none;
        p.outside = PTO_POISON_READ;
        p.only = k;
        if (decides(b, p, code))
            return blame_address(b, PTO_MISUSE_READ, b->clusters[k].offset, false);
    }
    return pto_misused(b->w, PTO_MISUSE_READ, 0, 0, 0, 0);
}

static bool make_room(const body *b)
{
    pto_copies *c = &b->w->s->copies;
    int64_t bytes = b->bytes + PTO_CACHE_LINE;
    return pto_make_room(&c->image, bytes) && pto_make_room(&c->work, bytes) && pto_make_room(&c->first, bytes) &&
           pto_make_room(&c->writable, bytes) &&
           pto_make_room(&c->scratch, b->w->kernel->scratch_bytes + 2 * MARGIN + PTO_CACHE_LINE);
}

int32_t pto_sanitize_body(const pto_watch *w)
{
    body b = {.w = w, .bytes = PTO_CACHE_LINE};
    place_clusters(&b);
    if (b.bytes > MAX_COPIED || !make_room(&b)) {
        w->s->report.n_unwatched++;
        return w->kernel->entry(w->args, w->scalars, w->worker->scratch, &w->worker->context);
    }
    for (int64_t i = 0; i < w->n_args; i++) {
        b.args[i] = w->args[i];
        b.args[i].data = aligned(&w->s->copies.work) + (b.of[i] < 0 ? 0 : b.at[i]);
    }
    mark_writable(&b);
    const patterns first = {PTO_POISON, PTO_POISON, PTO_POISON, -1}, second = {PTO_POISON_READ, PTO_POISON_LEFT, PTO_POISON_READ, -1};
    prepare(&b, &first);
    int32_t code = run(&b, true);
    pto_fault fault = w->worker->context.fault;
    for (int32_t time = 0;; time++) {
        int64_t stray = stray_write(&b);
        if (stray >= 0)
            return blame_address(&b, PTO_MISUSE_WRITE, stray, true);
        if (!is_scratch_whole(&b))
            return pto_misused(w, PTO_MISUSE_SCRATCH, 0, 0, 0, 0);
        if (time == 1)
            break;
        memcpy(aligned(&w->s->copies.first), aligned(&w->s->copies.work), (size_t)b.bytes);
        prepare(&b, &second);
        int32_t again = run(&b, false);
        if (gives_the_same(&b, again, code))
            continue;
        if (decides(&b, first, code)) {        /* not even the same memory gives the same: it has a state of its own */
            w->s->report.n_unwatched++;
            commit(&b, aligned(&w->s->copies.first), false);
            w->worker->context.fault = fault;
            return code;
        }
        return blame(&b, code);
    }
    commit(&b, aligned(&w->s->copies.work), true);
    w->worker->context.fault = fault;
    return code;
}
