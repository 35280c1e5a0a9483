/* sim_routes.c: the links of routes, see sim_routes.h. */
#include "sim_routes.h"

enum { NONE = -1 };

static int64_t link_of(const pto_sim_options *o, int64_t rank, int64_t number)
{
    return (o->link_pool + number) * o->n_workers + rank * o->rank_workers;
}

/* How far the target is up an axis of `size` ranks, which are `below` ranks apart. */
static int64_t ahead(int64_t from, int64_t to, int64_t below, int64_t size)
{
    return (to / below % size - from / below % size + size) % size;
}

int64_t pto_sim_n_links(const pto_sim_options *o, int64_t source, int64_t target)
{
    int64_t n = 0, below = 1;
    if (source == target || o->route == PTO_ROUTE_SWITCH)
        return source == target ? 0 : 2;
    for (int32_t axis = o->n_axes - 1; axis >= 0; below *= o->axes[axis--]) {
        int64_t up = ahead(source, target, below, o->axes[axis]), down = ahead(target, source, below, o->axes[axis]);
        n += up < down ? up : down;
    }
    return n;
}

int64_t pto_sim_first_link(const pto_sim_options *o, int64_t source, int64_t target)
{
    if (o->route == PTO_ROUTE_SWITCH)
        return link_of(o, source, 0);
    int64_t below = 1, number = 0;
    for (int32_t axis = o->n_axes - 1; axis >= 0; below *= o->axes[axis--]) {      /* the first axis that differs is looked at last */
        int64_t up = ahead(source, target, below, o->axes[axis]);
        if (up > 0)
            number = 2 * axis + (up > ahead(target, source, below, o->axes[axis]));
    }
    return link_of(o, source, number);
}

int64_t pto_sim_next_link(const pto_sim_options *o, int64_t link, int64_t target)
{
    int64_t rank = link % o->n_workers / o->rank_workers, number = link / o->n_workers - o->link_pool, below = 1;
    if (o->route == PTO_ROUTE_SWITCH)
        return number == 0 ? link_of(o, target, 1) : NONE;
    for (int32_t axis = o->n_axes - 1; axis > number / 2; axis--)
        below *= o->axes[axis];
    int64_t size = o->axes[number / 2], at = rank / below % size, step = number % 2 == 0 ? 1 : size - 1;
    rank += ((at + step) % size - at) * below;
    return rank == target ? NONE : pto_sim_first_link(o, rank, target);
}
