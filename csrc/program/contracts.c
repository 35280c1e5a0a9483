/* contracts.c: contracts of index tensors and the rows of sparse axes: what was proved relies on them. */
#include <stdlib.h>
#include <string.h>

#include "program.h"

static int64_t element(const pto_program *p, int32_t slot, const char *at)
{
    int32_t bytes = p->tensors[slot].elem_bytes;
    uint64_t raw = 0;
    memcpy(&raw, at, (size_t)bytes);   /* little-endian */
    if (!p->slots[slot].is_signed || bytes == 8)
        return (int64_t)raw;
    int shift = 64 - 8 * bytes;
    return (int64_t)(raw << shift) >> shift;
}

/* Copy a tensor's elements, in row-major order. NULL when memory ran out, or for none (*count is 0 then). */
static int64_t *values_of(const pto_program *p, int32_t slot, const pto_tensor *t, int64_t *count)
{
    *count = 1;
    for (int32_t k = 0; k < t->rank; ++k)
        *count *= t->dim[k];
    int64_t *out = *count > 0 ? malloc((size_t)*count * sizeof *out) : NULL;
    int64_t index[PTO_TENSOR_RANK] = {0};
    for (int64_t n = 0; out != NULL && n < *count; ++n) {
        int64_t offset = 0;
        for (int32_t k = 0; k < t->rank; ++k)
            offset += index[k] * t->stride[k];
        out[n] = element(p, slot, t->data + offset * p->tensors[slot].elem_bytes);
        for (int32_t k = t->rank - 1; k >= 0 && ++index[k] == t->dim[k]; --k)
            index[k] = 0;
    }
    return out;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int32_t check_contract(const pto_program *p, int32_t slot, const pto_tensor *t, pto_program_result *r)
{
    int64_t count;
    int64_t *values = values_of(p, slot, t, &count);
    if (values == NULL)
        return count == 0 ? PTO_OK : pto_refuse(r, PTO_E_NOMEM, "no memory to check `%s`", p->tensors[slot].name);
    const char *name = p->tensors[slot].name;
    int64_t row = t->rank > 0 ? t->dim[t->rank - 1] : 1;
    int32_t status = PTO_OK;
    for (int64_t k = 1; status == PTO_OK && p->slots[slot].is_monotone && k < count; ++k)
        if (k % row != 0 && values[k] < values[k - 1])
            status = pto_refuse(r, PTO_E_ARGUMENT, "`%s` is declared Monotone, and falls from %lld to %lld at element %lld", name,
                                (long long)values[k - 1], (long long)values[k], (long long)k);
    if (status == PTO_OK && p->slots[slot].is_injective) {
        qsort(values, (size_t)count, sizeof *values, compare);
        for (int64_t k = 1; status == PTO_OK && k < count; ++k)
            if (values[k] >= 0 && values[k] == values[k - 1])
                status = pto_refuse(r, PTO_E_ARGUMENT, "`%s` is declared Injective, and two of its elements are %lld", name,
                                    (long long)values[k]);
    }
    free(values);
    return status;
}

static int32_t check_rows(const pto_program_sparse *axis, const char *indptr_name, const char *indices_name, const int64_t *indptr,
                          int64_t n_indptr, const int64_t *indices, int64_t n_indices, pto_program_result *r)
{
    for (int64_t row = 0; row + 1 < n_indptr; ++row) {
        if (indptr[row] < 0 || indptr[row + 1] < indptr[row] || indptr[row + 1] > n_indices)
            return pto_refuse(r, PTO_E_ARGUMENT, "sparse axis `%s`: `%s` falls, or points outside `%s`, at row %lld", axis->name,
                              indptr_name, indices_name, (long long)row);
        for (int64_t k = indptr[row]; k < indptr[row + 1]; ++k)
            if (indices[k] < 0 || (k > indptr[row] && indices[k] <= indices[k - 1]))
                return pto_refuse(r, PTO_E_ARGUMENT, "sparse axis `%s`: the columns of row %lld do not ascend from 0 on: `%s`[%lld] is %lld",
                                  axis->name, (long long)row, indices_name, (long long)k, (long long)indices[k]);
    }
    return PTO_OK;
}

static int32_t check_sparse(const pto_program *p, const pto_program_sparse *axis, const pto_tensor *tensors, pto_program_result *r)
{
    int64_t n_indptr, n_indices;
    int64_t *indptr = values_of(p, axis->indptr, &tensors[axis->indptr], &n_indptr);
    int64_t *indices = values_of(p, axis->indices, &tensors[axis->indices], &n_indices);
    int32_t status = PTO_OK;
    if ((indptr == NULL && n_indptr > 0) || (indices == NULL && n_indices > 0))
        status = pto_refuse(r, PTO_E_NOMEM, "no memory to check the sparse axis `%s`", axis->name);
    else
        status = check_rows(axis, p->tensors[axis->indptr].name, p->tensors[axis->indices].name, indptr, n_indptr, indices, n_indices, r);
    free(indptr);
    free(indices);
    return status;
}

int32_t pto_check_data(const pto_program *p, const pto_tensor *tensors, pto_program_result *r)
{
    int32_t status = PTO_OK;
    for (int32_t k = 0; status == PTO_OK && k < p->n_tensors; ++k)
        if (p->slots[k].is_injective || p->slots[k].is_monotone)
            status = check_contract(p, k, &tensors[k], r);
    for (int32_t k = 0; status == PTO_OK && k < p->n_sparse; ++k)
        status = check_sparse(p, &p->sparse[k], tensors, r);
    return status;
}
