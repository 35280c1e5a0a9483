/* nodes.c: nodes behind the others of a record, see nodes.h. */
#include "nodes.h"

/* Find the shape of argument i, whose shape is another than that of argument i of the site's last task. Neighbours often have one shape,
   so the shape of argument i - 1 is tried before the table of shapes. */
static void find_shape(pto_record *r, pto_shape *set, int32_t i, const pto_arg *arg)
{
    if (i > 0 && pto_shape_is_of(&set[i - 1], arg)) {
        set[i] = set[i - 1];
        return;
    }
    set[i].id = ++r->n_shapes;
    pto_shape_find(&set[i], arg);
}

bool pto_record_shapes(pto_record *r, int32_t site, int32_t n_args, const pto_arg *args, const pto_shape **shapes)
{
    pto_shape *set = r->shapes + (size_t)(site & (PTO_SHAPE_SETS - 1)) * PTO_MAX_ARGS;
    for (int32_t i = 0; i < n_args; i++) {
        if (!pto_shape_is_of(&set[i], &args[i]))
            find_shape(r, set, i, &args[i]);
        if (!pto_shape_is_valid(&set[i], &args[i]))
            return false;
        shapes[i] = &set[i];
    }
    return true;
}

/* Empty the columns; absolute ids go on from what is dropped. */
void pto_record_drop(pto_record *r)
{
    r->first_node += r->n_nodes;
    r->first_task += r->n_tasks;
    r->n_tasks = r->n_nodes = r->n_edges = r->n_marks = r->n_args = r->n_scalars = r->n_index = 0;
    r->done = (pto_done){0};
    r->total_cost = 0;
    r->max_kernel = -1;
    r->graph.valid = false;
    r->n_gates = 0;
    r->window_task = 0;
    pto_arena_drop(&r->arena);
}

bool pto_record_prunes(const pto_record_options *options)
{
    return !options->forgets_nothing && options->window > 0 && options->window_unit == PTO_WINDOW_TASKS;
}

int32_t pto_record_hand_over(pto_record *r)
{
    if (r->on_full == NULL)
        return PTO_E_NOMEM;
    int32_t status = r->on_full(r, r->hook_user);
    if (status != PTO_OK)
        return status;
    pto_record_drop(r);
    if (r->deps != NULL && pto_record_prunes(&r->options))
        pto_deps_prune(r->deps, r->first_task - r->options.window,
                       r->completed_node < r->first_node ? r->completed_node : r->first_node);
    return PTO_OK;
}
