/* sanitize_races.c: tasks on the same elements that the workload leaves without an order.

   A record of a sanitized run has both kinds of edges: those of the structure, and those found in the data. A pair that a
   data edge joins and no way through the structure orders is a race. The data edges go to the latest accesses only: where a
   write hides an earlier one, both are joined to it, so a run in which every data edge is ordered has no race at all. */
#include "sanitize_races.h"

#include <string.h>

#include "../collections/array.h"
#include "../record/regions.h"
#include "sanitize_memory.h"
#include "sanitize_order.h"

/* Edges that say what the user wrote; the others were found in the data. */
#define PTO_EDGE_STRUCTURE (PTO_EDGE_ORDER | PTO_EDGE_AFTER | PTO_EDGE_CHANNEL | PTO_EDGE_EVENT | PTO_EDGE_LANE)

/* An edge counts as a conflict after this many steps even if its regions may lie in one another's gaps. */
#define PTO_EXACT_STEPS (1 << 20)

/* Two arguments of call sites whose kernels were proved to touch different elements of their regions. */
static bool is_proved_apart(const pto_sanitizer *s, int32_t site, int32_t arg, int32_t other_site, int32_t other_arg)
{
    const pto_sanitizer_options *o = &s->options;
    int64_t low = 0, high = o->n_apart;
    if (high == 0)
        return false;
    int64_t wanted = (int64_t)(o->site_begin[site] + arg) << 32 | (o->site_begin[other_site] + other_arg);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (o->apart[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < o->n_apart && o->apart[low] == wanted;
}

/* Accumulating arguments of one kind: the data edges between such tasks are what the user asked for. */
static bool combine_alike(const pto_sanitizer *s, int32_t first_site, int32_t first_arg, int32_t second_site, int32_t second_arg)
{
    const uint8_t *combines = s->options.site_combines;
    if (combines == NULL)
        return false;
    uint8_t first = combines[s->options.site_begin[first_site] + first_arg];
    return first != 0 && first == combines[s->options.site_begin[second_site] + second_arg];
}

/* Return the first pair of arguments on the same elements, (first << 32 | second), -1: none. `alike`: pairs that combine alike count. */
static int64_t first_conflict(const pto_sanitizer *s, const pto_race *race, const pto_arg *first, int64_t n_first, const pto_arg *second,
                              int64_t n_second, bool alike, bool *is_known)
{
    *is_known = true;
    for (int32_t j = 0; j < n_second; j++)
        for (int32_t i = 0; i < n_first; i++) {
            pto_box a, b;
            bool is_exact;
            if (first[i].buffer != second[j].buffer || !((first[i].flags | second[j].flags) & PTO_WRITE) ||
                is_proved_apart(s, race->first_site, i, race->second_site, j) ||
                pto_box_of(&first[i], &a) != PTO_BOX_OK || pto_box_of(&second[j], &b) != PTO_BOX_OK ||
                (!alike && combine_alike(s, race->first_site, i, race->second_site, j)) || !pto_box_meets(&a, &b, PTO_EXACT_STEPS, &is_exact))
                continue;
            if (is_exact)
                return (int64_t)i << 32 | j;
            *is_known = false;
        }
    return -1;
}

static void copy_index(const int64_t *from, int64_t n, int64_t *to, int32_t *n_to)
{
    *n_to = (int32_t)n;
    if (n > 0)
        memcpy(to, from, (size_t)n * sizeof *to);
}

static bool is_known_race(const pto_sanitizer *s, const pto_race *race)
{
    for (int32_t i = 0; i < s->report.n_rows; i++) {
        const pto_race *other = &s->races[i];
        if (other->first_site == race->first_site && other->second_site == race->second_site && other->first_arg == race->first_arg &&
            other->second_arg == race->second_arg && (other->second_task < 0) == (race->second_task < 0))
            return true;
    }
    return false;
}

/* Nothing is noted of two regions that do not touch after all, or whose kernels touch different elements of them. */
static void note_race(pto_sanitizer *s, const pto_record *r, int64_t first, int64_t at, int32_t edge_arg)
{
    pto_race race = {.first_task = -1, .second_task = -1, .first_arg = edge_arg < 0 ? 0 : edge_arg >> 16,
                     .second_arg = edge_arg < 0 ? 0 : edge_arg & 0xffff};
    int64_t second_task = r->node_task[at];
    if (second_task >= 0) {
        race.second_task = r->first_task + second_task;
        race.second_site = r->task_site[second_task];
        copy_index(r->index + r->index_begin[second_task], r->index_begin[second_task + 1] - r->index_begin[second_task],
                   race.second_index, &race.n_second_index);
    } else {
        int64_t mark = 0;
        while (r->mark_node[mark] != r->first_node + at)
            mark++;
        race.second_site = r->mark_site[mark];
    }
    if (first < r->first_node) {
        race.first_task = s->log.task[first];
        race.first_site = s->log.site[first];
        if (second_task >= 0 && is_proved_apart(s, race.first_site, race.first_arg, race.second_site, race.second_arg))
            return;
        copy_index(s->log.index + s->log.begin[first], s->log.begin[first + 1] - s->log.begin[first], race.first_index,
                   &race.n_first_index);
        if (second_task >= 0 && combine_alike(s, race.first_site, race.first_arg, race.second_site, race.second_arg))
            return;
    } else {
        int64_t task = r->node_task[first - r->first_node];
        const pto_arg *args = r->args + r->arg_begin[task];
        race.first_task = r->first_task + task;
        race.first_site = r->task_site[task];
        copy_index(r->index + r->index_begin[task], r->index_begin[task + 1] - r->index_begin[task], race.first_index,
                   &race.n_first_index);
        if (second_task >= 0) {
            bool is_known;
            const pto_arg *others = r->args + r->arg_begin[second_task];
            bool alike = r->task_stream[task] != r->task_stream[second_task];     /* streams run in no order of the program */
            int64_t pair = first_conflict(s, &race, args, r->arg_begin[task + 1] - r->arg_begin[task], others,
                                          r->arg_begin[second_task + 1] - r->arg_begin[second_task], alike, &is_known);
            if (pair < 0) {
                s->report.n_unchecked += !is_known;
                return;
            }
            race.first_arg = (int32_t)(pair >> 32);
            race.second_arg = (int32_t)pair;
            race.has_regions = 1;
        }
        race.first_region = args[race.first_arg];
    }
    if (second_task >= 0) {
        char *lo = NULL, *hi;
        race.second_region = r->args[r->arg_begin[second_task] + race.second_arg];
        if (pto_sanitize_memory(s, r, second_task, race.second_arg, &lo, &hi))
            race.base = lo;
    }
    s->report.n_races++;
    if (s->report.n_rows < PTO_MAX_RACES && !is_known_race(s, &race))
        s->races[s->report.n_rows++] = race;
}

/* Enter the node into the order: all that a join waits for, and what is structure of anything else. */
static int32_t enter(pto_sanitizer *s, const pto_record *r, int64_t at)
{
    int64_t n = 0, n_edges = r->pred_begin[at + 1] - r->pred_begin[at];
    if (!PTO_RESERVE(s->sources, s->sources_capacity, n_edges))
        return PTO_E_NOMEM;
    for (int64_t e = r->pred_begin[at]; e < r->pred_begin[at + 1]; e++)
        if (r->edge_why[e] & PTO_EDGE_STRUCTURE)
            s->sources[n++] = r->edge_src[e];
    return pto_order_add(&s->order, s->sources, n) ? PTO_OK : PTO_E_NOMEM;
}

int32_t pto_sanitize_races(pto_sanitizer *s, const pto_record *r, int64_t begin)
{
    s->order.steps = PTO_ORDER_STEPS;
    for (int64_t at = begin; at < r->n_nodes; at++) {
        if (__atomic_load_n(r->sink.cancel, __ATOMIC_RELAXED) != 0)
            return PTO_E_CANCELLED;
        bool has_room = r->first_node + at == s->order.n && s->order.n < PTO_ORDER_NODES;
        int32_t status = has_room ? enter(s, r, at) : PTO_OK;
        if (status != PTO_OK)
            return status;
        for (int64_t e = r->pred_begin[at]; e < r->pred_begin[at + 1]; e++) {
            if (!(r->edge_why[e] & ~PTO_EDGE_STRUCTURE))
                continue;
            s->report.n_pairs++;
            if (r->edge_why[e] & PTO_EDGE_STRUCTURE)
                continue;
            pto_ordered known = pto_order_before(&s->order, r->edge_src[e], r->first_node + at);
            if (known == PTO_ORDER_UNKNOWN)
                s->report.n_unchecked++;
            else if (known == PTO_ORDER_NO)
                note_race(s, r, r->edge_src[e], at, r->edge_arg[e]);
        }
    }
    return s->report.n_races > 0 ? PTO_E_RACE : PTO_OK;
}

/* What was made of an element that the orchestrator read comes after the read, structure or not. */
static bool is_read_mark(const pto_record *r, int64_t node)
{
    int64_t low = 0, high = r->n_marks;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (r->mark_node[middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low < r->n_marks && r->mark_node[low] == node && r->mark_stall[low] == PTO_STALL_READ;
}

void pto_sanitize_strip(const pto_sanitizer *s, pto_record *r, int64_t begin)
{
    int64_t to = r->pred_begin[begin], from = to;
    for (int64_t at = begin; at < r->n_nodes; at++) {
        int64_t end = r->pred_begin[at + 1];
        for (; from < end; from++) {
            bool keeps_all = r->node_kind[at] == PTO_NODE_JOIN || is_read_mark(r, r->edge_src[from]);
            uint16_t why = keeps_all ? r->edge_why[from] : (uint16_t)(r->edge_why[from] & s->options.keep);
            if (why == 0)
                continue;
            r->edge_src[to] = r->edge_src[from];
            r->edge_arg[to] = r->edge_arg[from];
            r->edge_why[to++] = why;
        }
        r->pred_begin[at + 1] = to;
    }
    r->n_edges = to;
    r->graph.valid = false;
}
