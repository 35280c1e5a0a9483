/* sanitize_tasks.c: run one task watched.

   An element that nobody has written holds a pattern. A task that reads such elements runs twice, with another pattern the
   second time: if it gives the same, it does not depend on them (it picks others, or masks these out); if not, halving the
   elements that hold the second pattern finds one that decides. Running twice also tells what a task has written from what
   holds the pattern still: a kernel may store a NaN of its own. */
#include "sanitize_tasks.h"

#include <string.h>

#include "../engine/prints.h"
#include "sanitize_bodies.h"
#include "sanitize_memory.h"

static int64_t n_unwritten(const pto_watch *w, int64_t i)
{
    int64_t n = 0;
    if (w->shadows[i] != NULL && w->shadows[i]->n_unwritten > 0)
        PTO_EACH_ELEMENT(&w->args[i], row, col)
            n += pto_is_unwritten(w->shadows[i], pto_element(&w->args[i], row, col));
    return n;
}

/* ---- what a task writes, from end to end ---- */

static int64_t written_bytes(const pto_watch *w)
{
    int64_t bytes = 0;
    for (int64_t i = 0; i < w->n_args; i++)
        if (pto_writes(&w->args[i]) && w->args[i].extent[0] > 0 && w->args[i].extent[1] > 0)
            bytes += w->args[i].extent[0] * w->args[i].extent[1] * w->args[i].elem_bytes;
    return bytes;
}

static void keep_written(const pto_watch *w, char *to)
{
    for (int64_t i = 0; i < w->n_args; i++)
        if (pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                memcpy(to, pto_element(&w->args[i], row, col), (size_t)w->args[i].elem_bytes);
                to += w->args[i].elem_bytes;
            }
}

static void restore_written(const pto_watch *w, const char *from)
{
    for (int64_t i = 0; i < w->n_args; i++)
        if (pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                memcpy(pto_element(&w->args[i], row, col), from, (size_t)w->args[i].elem_bytes);
                from += w->args[i].elem_bytes;
            }
}

/* ---- patterns ---- */

static void fill(const pto_watch *w, bool is_read, int64_t n, int pattern)
{
    for (int64_t i = 0, k = 0; i < w->n_args; i++)
        if (w->shadows[i] != NULL && w->shadows[i]->n_unwritten > 0 && (is_read ? pto_reads(&w->args[i]) : pto_writes(&w->args[i])))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                char *element = pto_element(&w->args[i], row, col);
                if (pto_is_unwritten(w->shadows[i], element) && k++ < n)
                    memset(element, pattern, (size_t)w->args[i].elem_bytes);
            }
}

/* Give the unwritten elements that the task only writes one pattern, those that it reads another, and the first n of these a
   third; keep how all that it writes looks then. */
static void fill_unwritten(const pto_watch *w, int left, int read, int64_t n, int other)
{
    fill(w, false, INT64_MAX, left);
    fill(w, true, INT64_MAX, read);
    fill(w, true, n, other);
    keep_written(w, w->s->filled.data);
}

static void poison_scratch(const pto_watch *w)
{
    if (w->kernel->scratch_bytes > 0)
        memset(w->worker->scratch, PTO_POISON, (size_t)w->kernel->scratch_bytes);
}

static int32_t run_entry(const pto_watch *w, bool is_shown)
{
    pto_context *context = &w->worker->context;
    void (*print)(pto_context *, int32_t, const void *, int32_t, int64_t, int64_t, int64_t, int64_t) = context->print;
    if (!is_shown)
        context->print = pto_print_nothing;
    poison_scratch(w);
    context->fault = (pto_fault){0};
    int32_t code = w->kernel->entry(w->args, w->scalars, w->worker->scratch, context);
    poison_scratch(w);
    context->print = print;
    return code;
}

/* Neither this time nor the first was the element stored to. */
static bool is_left(const pto_shadow *shadow, const char *element, const char *after, const char *filled, int32_t bytes)
{
    return pto_is_unwritten(shadow, element) && pto_holds(after, bytes, PTO_POISON) && memcmp(element, filled, (size_t)bytes) == 0;
}

static bool gives_the_same(const pto_watch *w, int32_t code, int32_t first_code)
{
    const char *after = w->s->after.data, *filled = w->s->filled.data;
    if (code != first_code)
        return false;
    for (int64_t i = 0; i < w->n_args; i++) {
        int32_t bytes = w->args[i].elem_bytes;
        if (pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                const char *element = pto_element(&w->args[i], row, col);
                if (!is_left(w->shadows[i], element, after, filled, bytes) && memcmp(after, element, (size_t)bytes) != 0)
                    return false;
                after += bytes;
                filled += bytes;
            }
    }
    return true;
}

/* Enter what the task has written, and let the rest hold the first pattern again. */
static void settle(const pto_watch *w)
{
    const char *after = w->s->after.data, *filled = w->s->filled.data;
    for (int64_t i = 0; i < w->n_args; i++) {
        int32_t bytes = w->args[i].elem_bytes;
        if (pto_writes(&w->args[i]))
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                char *element = pto_element(&w->args[i], row, col);
                if (!is_left(w->shadows[i], element, after, filled, bytes))
                    pto_set_written(w->shadows[i], element);
                after += bytes;
                filled += bytes;
            }
    }
    fill(w, false, INT64_MAX, PTO_POISON);
    fill(w, true, INT64_MAX, PTO_POISON);
}

static bool is_undecided(const pto_watch *w)   /* an unwritten element holds the pattern: was it stored, or left? */
{
    for (int64_t i = 0; i < w->n_args; i++)
        if (pto_writes(&w->args[i]) && w->shadows[i] != NULL && w->shadows[i]->n_unwritten > 0)
            PTO_EACH_ELEMENT(&w->args[i], row, col) {
                const char *element = pto_element(&w->args[i], row, col);
                if (pto_is_unwritten(w->shadows[i], element) && pto_holds(element, w->args[i].elem_bytes, PTO_POISON))
                    return true;
            }
    return false;
}

/* ---- which element decides ---- */

static bool differs(const pto_watch *w, int64_t n, int other, int32_t code)
{
    restore_written(w, w->s->before.data);
    fill_unwritten(w, PTO_POISON, PTO_POISON, n, other);
    return !gives_the_same(w, run_entry(w, false), code);
}

static int32_t blame_element(const pto_watch *w, int64_t number)
{
    for (int64_t i = 0; i < w->n_args; i++)
        if (pto_reads(&w->args[i]) && w->shadows[i] != NULL && w->shadows[i]->n_unwritten > 0)
            PTO_EACH_ELEMENT(&w->args[i], row, col)
                if (pto_is_unwritten(w->shadows[i], pto_element(&w->args[i], row, col)) && number-- == 0)
                    return pto_misused(w, PTO_MISUSE_UNWRITTEN, i, row, col, n_unwritten(w, i));
    return 1;
}

/* With n elements of the other pattern the task gives something else, with none it does not: halve. */
static int32_t find_decider(const pto_watch *w, int64_t n, int other, int32_t code)
{
    int64_t same = 0, high = n;
    while (high - same > 1) {
        int64_t middle = same + (high - same) / 2;
        if (differs(w, middle, other, code))
            high = middle;
        else
            same = middle;
    }
    return blame_element(w, high - 1);
}

static int32_t run_twice(const pto_watch *w, int64_t n_read)
{
    int64_t bytes = written_bytes(w) + 1;
    if (!pto_make_room(&w->s->before, bytes) || !pto_make_room(&w->s->after, bytes) || !pto_make_room(&w->s->filled, bytes))
        return run_entry(w, true);
    keep_written(w, w->s->before.data);
    keep_written(w, w->s->filled.data);
    int32_t code = run_entry(w, true);
    pto_fault fault = w->worker->context.fault;
    keep_written(w, w->s->after.data);
    if (n_read > 0 || is_undecided(w)) {
        restore_written(w, w->s->before.data);
        fill_unwritten(w, PTO_POISON_LEFT, PTO_POISON_READ, 0, 0);
        bool is_same = gives_the_same(w, run_entry(w, false), code);
        if (n_read > 0 && !is_same && differs(w, n_read, PTO_POISON_READ, code))
            return find_decider(w, n_read, PTO_POISON_READ, code);
        if (n_read > 0 && code != 0 && differs(w, n_read, 0, code))    /* it fails with both: because of them? */
            return find_decider(w, n_read, 0, code);
    }
    settle(w);
    w->worker->context.fault = fault;
    return code;
}

int32_t pto_sanitize_task(pto_worker *worker, uint32_t at)
{
    pto_pool *pool = worker->pool;
    const pto_graph_node *node = &pool->graph->nodes[at];
    pto_watch w = {.worker = worker, .s = pool->sanitizer, .record = pool->record, .kernel = &pool->kernels[node->kernel],
                   .args = pool->args + node->arg, .scalars = pool->scalars + node->scalar, .task = pool->node_task[at], .at = at};
    w.n_args = w.record->arg_begin[w.task + 1] - w.record->arg_begin[w.task];
    int64_t n_read = 0, n_written = 0;
    for (int64_t i = 0; i < w.n_args; i++) {
        if (!pto_sanitize_shadow(w.s, w.record, w.task, (int32_t)i, &w.shadows[i]))
            w.shadows[i] = NULL;
        int64_t n = n_unwritten(&w, i);
        n_read += pto_reads(&w.args[i]) ? n : 0;
        n_written += pto_writes(&w.args[i]) ? n : 0;
    }
    bool is_own = node->kernel < w.s->options.n_kernels && w.s->options.own_body[node->kernel];
    int32_t code = is_own ? pto_sanitize_body(&w) : n_read + n_written > 0 ? run_twice(&w, n_read) : run_entry(&w, true);
    return __atomic_load_n(worker->context.cancel, __ATOMIC_RELAXED) != 0 ? PTO_CANCELLED : code;     /* of a task that has ended early nothing is found out */
}
