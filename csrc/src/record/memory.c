/* memory.c: growing arrays. */
#include "../internal.h"

bool pto_grow(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes)
{
    int64_t grown = *capacity < 16 ? 16 : *capacity;
    while (grown < need) {
        if (grown > INT64_MAX / 4)
            return false;
        grown *= 2;
    }
    if ((uint64_t)grown > (uint64_t)PTRDIFF_MAX / elem_bytes)
        return false;
    void *data;
    memcpy(&data, slot, sizeof data);
    data = realloc(data, (size_t)grown * elem_bytes);
    if (data == NULL)
        return false;
    memcpy(slot, &data, sizeof data);
    *capacity = grown;
    return true;
}
