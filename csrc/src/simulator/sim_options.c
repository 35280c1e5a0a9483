/* sim_options.c: which options of a simulation fit together, see sim_options.h. */
#include "sim_options.h"

static bool is_window(int64_t size, int32_t unit, int32_t mode)
{
    return size >= 0 && unit >= 0 && unit < PTO_N_WINDOWS && mode >= PTO_WINDOW_STALL && mode <= PTO_WINDOW_BENCHMARK;
}

/* No two windows are of one unit, and each further one bounds something. */
static bool has_valid_windows(const pto_sim_options *o)
{
    if (!is_window(o->window, o->window_unit, o->window_mode) || o->n_more < 0 || (o->n_more > 0 && o->more == NULL))
        return false;
    uint32_t units = 1u << o->window_unit;
    for (int32_t i = 0; i < o->n_more; i++) {
        const pto_window *w = &o->more[i];
        if (!is_window(w->size, w->unit, w->mode) || w->size == 0 || (units >> w->unit & 1))
            return false;
        units |= 1u << w->unit;
    }
    return true;
}

/* Of what streams submit, and when it is released. */
static bool has_valid_rules(const pto_sim_options *o)
{
    bool has_rate = o->release_num > 0 && o->release_den > 0 && o->release_den <= INT64_MAX / 2;
    bool has_timing = o->timing == PTO_TIMING_IMMEDIATE || (o->timing == PTO_TIMING_RATE && has_rate) ||
                      ((o->timing == PTO_TIMING_BATCHED || o->timing == PTO_TIMING_INTERLEAVED) && o->timing_n > 0);
    bool has_workers = o->n_workers >= (o->is_calendar ? 0 : 1) && o->n_workers <= INT32_MAX;      /* a calendar may name them */
    return has_workers && has_timing && has_valid_windows(o) && o->start_after >= PTO_AFTER_ALL && o->submit_cycles >= 0;
}

/* Every rank has its workers, and no task another executor than what its rank says. */
static bool is_route(const pto_sim_options *o)
{
    int64_t n_ranks = o->rank_workers > 0 ? o->n_workers / o->rank_workers : 0, n = 1;
    if (o->route < 0 || o->route > PTO_ROUTE_SWITCH || n_ranks < 1 || n_ranks * o->rank_workers != o->n_workers || o->link_pool < 0 ||
        o->link_buffers < 0 || o->n_axes < 0 || o->n_axes > PTO_MAX_AXES || o->is_shared || o->steals || o->is_calendar)
        return false;
    for (int32_t axis = 0; axis < o->n_axes; axis++)
        if (o->axes[axis] < 1 || __builtin_mul_overflow(n, o->axes[axis], &n))
            return false;
    int64_t n_links = o->route == PTO_ROUTE_SWITCH ? 2 : 2 * (int64_t)o->n_axes;
    if ((o->route == PTO_ROUTE_TORUS && n != n_ranks) || o->link_pool + n_links > o->n_pools)
        return false;
    for (int64_t link = 0; link < n_links; link++)
        if (o->pool_size[o->link_pool + link] != 1)
            return false;
    return n_ranks < PTO_MAX_CALENDAR;
}

/* Of executors: nothing contradicts. */
static bool has_valid_executors(const pto_sim_options *o)
{
    bool has_pools = o->n_pools >= 0 && o->n_pools <= PTO_MAX_POOLS && (o->n_pools == 0 || o->pool_size != NULL);
    bool has_costs = o->dispatch_cycles >= 0 && o->retire_cycles >= 0 && o->bytes_per_cycle >= 0;
    bool is_dynamic = o->is_shared || o->steals || o->timing == PTO_TIMING_INTERLEAVED;
    bool has_places = o->hop_cycles == 0 || (o->hop_cycles > 0 && o->grid_columns > 0 && !o->is_shared && !o->steals);
    bool has_routes = o->route == PTO_ROUTE_NONE || is_route(o);
    bool has_starts = o->n_starts == 0 || (o->n_starts > 0 && o->starts != NULL && o->is_calendar);
    if (!has_pools || !has_costs || !has_places || !has_routes || !has_starts || (o->is_calendar && is_dynamic))
        return false;
    int64_t n = 0, pool;
    for (int32_t p = 0; p < o->n_pools; p++)
        if (o->pool_size[p] < 0 || (o->is_calendar && o->pool_size[p] > 1) ||
            __builtin_mul_overflow(o->pool_size[p], o->n_workers, &pool) || __builtin_add_overflow(n, pool, &n))
            return false;
    return n <= INT32_MAX;
}

bool pto_sim_options_fit(const pto_sim_options *o)
{
    return has_valid_rules(o) && has_valid_executors(o);
}

bool pto_sim_releases_at_once(const pto_sim_options *o)
{
    return o->timing != PTO_TIMING_BATCHED && o->timing != PTO_TIMING_RATE;
}

bool pto_sim_is_plain(const pto_sim_options *o)
{
    return pto_sim_releases_at_once(o) && o->start_after == 0 && o->window_unit == PTO_WINDOW_TASKS && o->n_more == 0 &&
           o->window_mode != PTO_WINDOW_BENCHMARK && o->submit_cycles == 0 && !o->keep_trace;
}
