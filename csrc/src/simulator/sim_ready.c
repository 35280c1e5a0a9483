/* sim_ready.c: the ready tasks of a queue, see sim_ready.h. */
#include "sim_ready.h"

#include "../collections/array.h"
#include "../collections/binary_heap.h"

/* ---- ready tasks by rank, class by class ---- */

static bool rank_push(pto_sim_class *row, pto_sim_rank rank)
{
    if (!PTO_RESERVE(row->data, row->capacity, row->n + 1))
        return false;
    row->n++;
    PTO_SIFT_UP(row->data, row->n, rank, pto_sim_rank_before);
    return true;
}

static void rank_pop(pto_sim_class *row)
{
    pto_sim_rank moved = row->data[--row->n];
    PTO_SIFT_DOWN(row->data, row->n, moved, pto_sim_rank_before);
}

/* The first class whose number is at least this. */
static int64_t class_from(const pto_sim_classes *classes, int64_t number)
{
    int64_t low = 0, high = classes->n;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (classes->rows[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool classes_push(pto_sim_classes *classes, pto_sim_rank rank, int64_t number)
{
    int64_t at = class_from(classes, number);
    if (at == classes->n || classes->rows[at].number != number) {
        if (!PTO_RESERVE(classes->rows, classes->capacity, classes->n + 1))
            return false;
        memmove(classes->rows + at + 1, classes->rows + at, (size_t)(classes->n++ - at) * sizeof *classes->rows);
        classes->rows[at] = (pto_sim_class){.number = number};
    }
    return rank_push(&classes->rows[at], rank);
}

/* The class whose turn it is, NULL: nothing is ready. */
static pto_sim_class *next_class(const pto_sim_classes *classes)
{
    pto_sim_class *best = NULL;
    int64_t begin = class_from(classes, classes->served + 1);
    for (int64_t i = 0; i < classes->n; i++) {
        pto_sim_class *row = &classes->rows[begin + i < classes->n ? begin + i : begin + i - classes->n];
        if (row->n > 0 && (best == NULL || row->data[0].priority > best->data[0].priority))
            best = row;
    }
    return best;
}

/* ---- ready tasks ---- */

bool pto_sim_ready_init(pto_sim_ready *ready, bool is_ranked)
{
    *ready = (pto_sim_ready){.first = -1, .last = -1};
    if (!is_ranked)
        return true;
    ready->classes = calloc(1, sizeof *ready->classes);
    if (ready->classes == NULL)
        return false;
    ready->classes->served = -1;
    return true;
}

void pto_sim_ready_free(pto_sim_ready *ready)
{
    free(ready->late.data);
    if (ready->classes == NULL)
        return;
    for (int64_t i = 0; i < ready->classes->n; i++)
        free(ready->classes->rows[i].data);
    free(ready->classes->rows);
    free(ready->classes);
}

static pto_sim_entry entry_of(const pto_sim_nodes *nodes, int64_t node)
{
    return (pto_sim_entry){pto_sim_at(nodes, node)->ready, node};
}

bool pto_sim_ready_push_apart(pto_sim_ready *ready, const pto_sim_nodes *nodes, int64_t node)
{
    if (ready->classes == NULL)
        return pto_sim_heap_push(&ready->late, entry_of(nodes, node));
    pto_sim_more more = pto_sim_more_of(nodes, node);
    return classes_push(ready->classes, (pto_sim_rank){more.priority, pto_sim_at(nodes, node)->ready, node}, more.lane_class);
}

pto_sim_rank pto_sim_ready_head(const pto_sim_ready *ready, const pto_sim_nodes *nodes)
{
    if (ready->classes != NULL) {
        const pto_sim_class *row = next_class(ready->classes);
        return row == NULL ? (pto_sim_rank){.node = -1} : row->data[0];
    }
    int64_t node = ready->first;
    if (ready->late.n > 0 && (node < 0 || pto_sim_entry_before(ready->late.data[0], entry_of(nodes, node))))
        return (pto_sim_rank){0, ready->late.data[0].time, ready->late.data[0].id};
    return (pto_sim_rank){0, node < 0 ? 0 : pto_sim_at(nodes, node)->ready, node};
}

int64_t pto_sim_ready_pop_apart(pto_sim_ready *ready, const pto_sim_nodes *nodes)
{
    if (ready->classes != NULL) {
        pto_sim_class *row = next_class(ready->classes);
        if (row == NULL)
            return -1;
        ready->classes->served = row->number;
        int64_t node = row->data[0].node;
        rank_pop(row);
        return node;
    }
    int64_t node = ready->first;
    if (node < 0 || pto_sim_entry_before(ready->late.data[0], entry_of(nodes, node)))
        return pto_sim_heap_pop(&ready->late).id;
    ready->first = pto_sim_at(nodes, node)->next;
    return node;
}
