/* prints.c: the values that tasks print: copied while the tasks run, read in program order when the run is over.

   Memory is bounded: what would come last in program order is dropped, so what is kept does not depend on which thread ran
   what when. `cut` is the first value known to be dropped; whatever comes after it goes as well. */
#include "prints.h"

#include "../collections/array.h"

struct pto_prints {
    pto_prints_options options;
    pthread_mutex_t lock;
    pto_printed *rows;
    char *data;
    int64_t n, capacity;
    int64_t n_bytes, data_capacity;
    int64_t n_total;
    int64_t cut_task, cut_order;       /* INT64_MAX: none */
};

static bool comes_before(int64_t task, int64_t order, int64_t other_task, int64_t other_order)
{
    return task != other_task ? task < other_task : order < other_order;
}

static int compare(const void *lhs, const void *rhs)
{
    const pto_printed *a = lhs, *b = rhs;
    return comes_before(b->task, b->order, a->task, a->order) - comes_before(a->task, a->order, b->task, b->order);
}

static int64_t cost_of(const pto_printed *row)
{
    return row->size_bytes + PTO_PRINT_BYTES;
}

/* Sort, and drop from the first value on that does not fit. Data stay in the order in which they came. */
static void settle(pto_prints *p)
{
    if (p->n > 0)
        qsort(p->rows, (size_t)p->n, sizeof *p->rows, compare);
    int64_t kept = 0, used = 0;
    while (kept < p->n && comes_before(p->rows[kept].task, p->rows[kept].order, p->cut_task, p->cut_order) &&
           used + cost_of(&p->rows[kept]) <= p->options.max_bytes)
        used += cost_of(&p->rows[kept++]);
    if (kept < p->n && comes_before(p->rows[kept].task, p->rows[kept].order, p->cut_task, p->cut_order)) {
        p->cut_task = p->rows[kept].task;
        p->cut_order = p->rows[kept].order;
    }
    p->n = kept;
}

/* Close the gaps that dropped values left in the data. */
static bool compact(pto_prints *p)
{
    settle(p);
    int64_t size = 0;
    for (int64_t i = 0; i < p->n; i++)
        size += p->rows[i].size_bytes;
    char *data = malloc(size > 0 ? (size_t)size : 1);
    if (data == NULL)
        return false;
    p->n_bytes = 0;
    for (int64_t i = 0; i < p->n; i++) {
        memcpy(data + p->n_bytes, p->data + p->rows[i].data, (size_t)p->rows[i].size_bytes);
        p->rows[i].data = p->n_bytes;
        p->n_bytes += p->rows[i].size_bytes;
    }
    free(p->data);
    p->data = data;
    p->data_capacity = size;
    return true;
}

static int64_t edge_of(int64_t extent, int64_t edge, bool shortened)
{
    return shortened && extent > 2 * edge ? 2 * edge : extent;
}

/* Element `at` of those kept along one direction: the last half comes from the end. */
static int64_t source_of(int64_t at, int64_t kept, int64_t extent)
{
    return kept < extent && at >= kept / 2 ? extent - kept + at : at;
}

static void copy(char *to, const char *from, int64_t elem_bytes, const pto_printed *row, int64_t row_step, int64_t col_step)
{
    for (int64_t r = 0; r < row->kept_rows; r++)
        for (int64_t c = 0; c < row->kept_cols; c++, to += elem_bytes)
            memcpy(to, from + (source_of(r, row->kept_rows, row->rows) * row_step +
                               source_of(c, row->kept_cols, row->cols) * col_step) * elem_bytes, (size_t)elem_bytes);
}

void pto_print_nothing(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows,
                          int64_t cols, int64_t row_step, int64_t col_step)
{
    (void)context, (void)statement, (void)data, (void)elem_bytes, (void)rows, (void)cols, (void)row_step, (void)col_step;
}

void pto_print_value(pto_context *context, int32_t statement, const void *data, int32_t elem_bytes, int64_t rows, int64_t cols,
                     int64_t row_step, int64_t col_step)
{
    pto_prints *p = context->prints;
    const pto_worker *worker = (const pto_worker *)(const void *)((const char *)context - offsetof(pto_worker, context));
    const pto_record *record = worker->pool->record;
    int64_t at = record->node_task[context->node];
    bool shortened = rows * cols > p->options.threshold;
    pto_printed row = {.task = record->first_task + at, .site = record->task_site[at], .statement = statement,
                       .rows = rows, .cols = cols, .kept_rows = edge_of(rows, p->options.edge, shortened),
                       .kept_cols = edge_of(cols, p->options.edge, shortened)};
    row.size_bytes = row.kept_rows * row.kept_cols * elem_bytes;
    row.n_index = (int32_t)(record->index_begin[at + 1] - record->index_begin[at]);
    memcpy(row.index, record->index + record->index_begin[at], (size_t)row.n_index * sizeof *row.index);
    pthread_mutex_lock(&p->lock);
    row.order = p->n_total++;
    bool fits = comes_before(row.task, row.order, p->cut_task, p->cut_order);
    if (fits && p->n_bytes + row.size_bytes + (p->n + 1) * PTO_PRINT_BYTES > 2 * p->options.max_bytes)
        fits = compact(p) && comes_before(row.task, row.order, p->cut_task, p->cut_order);
    if (fits && cost_of(&row) <= p->options.max_bytes && PTO_RESERVE(p->rows, p->capacity, p->n + 1) &&
        PTO_RESERVE(p->data, p->data_capacity, p->n_bytes + row.size_bytes)) {
        row.data = p->n_bytes;
        copy(p->data + row.data, data, elem_bytes, &row, row_step, col_step);
        p->n_bytes += row.size_bytes;
        p->rows[p->n++] = row;
    } else if (fits) {                 /* too large, or no memory: the end of what is kept */
        p->cut_task = row.task;
        p->cut_order = row.order;
    }
    pthread_mutex_unlock(&p->lock);
}

/* ---- entry ---- */

pto_prints *pto_prints_new(const pto_prints_options *options)
{
    pto_prints *p = calloc(1, sizeof *p);
    if (p == NULL)
        return NULL;
    p->options = *options;
    p->cut_task = p->cut_order = INT64_MAX;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void pto_prints_free(pto_prints *p)
{
    if (p == NULL)
        return;
    pthread_mutex_destroy(&p->lock);
    free(p->rows);
    free(p->data);
    free(p);
}

void pto_prints_read(pto_prints *p, pto_prints_view *out)
{
    pthread_mutex_lock(&p->lock);
    settle(p);
    *out = (pto_prints_view){.n = p->n, .n_total = p->n_total, .rows = p->rows, .data = p->data};
    pthread_mutex_unlock(&p->lock);
}
