/* bind.c: what a run binds, held against what was declared: the same rules as in Python. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

/* May two elements lie at one address? Strides, from the least on, each step over what lies inside them, or they may. */
static bool overlaps_itself(const pto_program_array *a)
{
    int64_t inside = 1, below = -1;
    for (int32_t done = 0; done < a->rank; ++done) {
        int64_t least = INT64_MAX, reach = 0;
        for (int32_t k = 0; k < a->rank; ++k) {
            int64_t step = a->stride[k] < 0 ? -a->stride[k] : a->stride[k];
            if (a->dim[k] > 1 && step > below && step < least)
                least = step, reach = step * (a->dim[k] - 1);
            else if (a->dim[k] > 1 && step == least)
                return true;
        }
        if (least == INT64_MAX)
            return false;
        if (least < inside)
            return true;
        inside += reach;
        below = least;
    }
    return false;
}

static int32_t check_array(const pto_program_tensor *t, const pto_program_slot *slot, const pto_program_array *a, pto_program_result *r)
{
    if (a->rank != t->rank)
        return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` is bound to an array of another rank: expected %d dimensions, found %d", t->name,
                          t->rank, a->rank);
    bool is_empty = false;
    for (int32_t k = 0; k < a->rank; ++k) {
        if (a->dim[k] < 0)
            return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` is bound to an array with a negative extent", t->name);
        is_empty = is_empty || a->dim[k] == 0;
    }
    if (a->data == NULL && !is_empty)
        return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` is bound to no memory", t->name);
    for (int32_t k = 0; k < a->rank; ++k)
        if (slot->fixed >> k & 1 && a->dim[k] != t->dim[k])
            return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` is bound at another size than the workload was made for: extent %d is %lld, "
                              "and the workload has read it as the number %lld", t->name, k, (long long)a->dim[k], (long long)t->dim[k]);
    if (t->is_written && !is_empty && overlaps_itself(a))
        return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s`, which tasks write, has elements that share memory", t->name);
    if (slot->is_unit_inner && a->rank > 0 && !is_empty && a->dim[a->rank - 1] > 1 && a->stride[a->rank - 1] != 1)
        return pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` is bound to an array whose last dimension is strided", t->name);
    return PTO_OK;
}

static int32_t make_array(const pto_program_tensor *t, pto_program_array *a, void **made, pto_program_result *r)
{
    size_t bytes = (size_t)t->elem_bytes;
    a->rank = t->rank;
    int64_t step = 1;
    for (int32_t k = t->rank - 1; k >= 0; --k) {
        a->dim[k] = t->dim[k];
        a->stride[k] = step;
        step *= t->dim[k];
        bytes *= (size_t)t->dim[k];
    }
    *made = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (*made == NULL)
        return pto_refuse(r, PTO_E_NOMEM, "no memory for tensor `%s`", t->name);
    a->data = *made;
    return PTO_OK;
}

/* The lowest byte of a tensor and the one after its highest. */
static void bytes_of(const pto_tensor *t, int32_t elem_bytes, uintptr_t *low, uintptr_t *high)
{
    intptr_t least = 0, most = elem_bytes;
    bool is_empty = false;
    for (int32_t k = 0; k < t->rank; ++k) {
        intptr_t reach = (t->dim[k] - 1) * t->stride[k] * elem_bytes;
        least += reach < 0 ? reach : 0;
        most += reach > 0 ? reach : 0;
        is_empty = is_empty || t->dim[k] == 0;
    }
    *low = is_empty ? 0 : (uintptr_t)t->data + (uintptr_t)least;
    *high = is_empty ? 0 : (uintptr_t)t->data + (uintptr_t)most;
}

/* Number the tensors so that those whose memory may overlap have one number. */
static void group(const pto_program *p, pto_tensor *tensors)
{
    for (int32_t k = 0; k < p->n_tensors; ++k)
        tensors[k].buffer = k;
    for (int32_t k = 1; k < p->n_tensors; ++k) {
        uintptr_t low, high;
        bytes_of(&tensors[k], p->tensors[k].elem_bytes, &low, &high);
        for (int32_t j = 0; j < k; ++j) {
            uintptr_t other_low, other_high;
            bytes_of(&tensors[j], p->tensors[j].elem_bytes, &other_low, &other_high);
            int32_t from = tensors[k].buffer, to = tensors[j].buffer;
            if (low >= other_high || other_low >= high || from == to)
                continue;
            for (int32_t i = 0; i <= k; ++i)
                if (tensors[i].buffer == from)
                    tensors[i].buffer = to;
        }
    }
}

static int32_t refuse_shared(const pto_program *p, const pto_tensor *tensors, pto_program_result *r)
{
    for (int32_t k = 0; k < p->n_tensors; ++k)
        for (int32_t j = 0; j < p->n_tensors; ++j) {
            if (j == k || tensors[j].buffer != tensors[k].buffer || !p->tensors[j].is_written)
                continue;
            if (p->slots[k].is_scalars && !p->tensors[k].is_written)
                return pto_refuse(r, PTO_E_ARGUMENT, "`%s` is read as a scalar and shares memory with `%s`, which tasks write",
                                  p->tensors[k].name, p->tensors[j].name);
            if (!p->record.infer)
                return pto_refuse(r, PTO_E_ARGUMENT, "`%s`, which tasks write, may share memory with `%s`, and no order is taken from data",
                                  p->tensors[j].name, p->tensors[k].name);
        }
    return PTO_OK;
}

static int32_t bind_symbol(const pto_program_symbol *s, const pto_program_value *given, int64_t *slot, pto_program_result *r)
{
    if (!given->is_bound && !s->is_given)
        return pto_refuse(r, PTO_E_ARGUMENT, "symbol `%s` has no value", s->name);
    int64_t value = given->is_bound ? given->whole : s->value;
    if (given->is_bound && s->is_float)
        memcpy(&value, &given->number, sizeof value);
    if (!s->is_float && (value < s->least || value > s->most))
        return pto_refuse(r, PTO_E_ARGUMENT, "symbol `%s` is %lld: expected %lld .. %lld", s->name, (long long)value, (long long)s->least,
                          (long long)s->most);
    *slot = value;
    return PTO_OK;
}

int32_t pto_bind_program(const pto_program *p, const pto_program_array *arrays, const pto_program_value *values, pto_bound *bound,
                         pto_program_result *r)
{
    bound->tensors = calloc((size_t)p->n_tensors + 1, sizeof *bound->tensors);
    bound->symbols = calloc((size_t)p->n_symbols + 1, sizeof *bound->symbols);
    bound->made = calloc((size_t)p->n_tensors + 1, sizeof *bound->made);
    if (bound->tensors == NULL || bound->symbols == NULL || bound->made == NULL)
        return pto_refuse(r, PTO_E_NOMEM, "no memory for what is bound");
    for (int32_t k = 0; k < p->n_tensors; ++k) {
        const pto_program_tensor *t = &p->tensors[k];
        if (t->is_fresh)
            continue;
        pto_program_array a = arrays[k];
        int32_t status = PTO_OK;
        if (a.is_bound)
            status = check_array(t, &p->slots[k], &a, r);
        else if (t->is_made)
            status = make_array(t, &a, &bound->made[k], r);
        else
            status = pto_refuse(r, PTO_E_ARGUMENT, "tensor `%s` has no data", t->name);
        if (status != PTO_OK)
            return status;
        pto_tensor *raw = &bound->tensors[k];
        raw->data = a.data;
        raw->rank = a.rank;
        memcpy(raw->dim, a.dim, sizeof raw->dim);
        memcpy(raw->stride, a.stride, sizeof raw->stride);
    }
    for (int32_t k = 0; k < p->n_symbols; ++k) {
        int32_t status = bind_symbol(&p->symbols[k], &values[k], &bound->symbols[k], r);
        if (status != PTO_OK)
            return status;
    }
    group(p, bound->tensors);
    int32_t status = refuse_shared(p, bound->tensors, r);
    return status == PTO_OK ? pto_check_data(p, bound->tensors, r) : status;
}

void pto_unbind(const pto_program *p, pto_bound *bound)
{
    for (int32_t k = 0; bound->made != NULL && k < p->n_tensors; ++k)
        free(bound->made[k]);
    free(bound->tensors);
    free(bound->symbols);
    free(bound->made);
}
