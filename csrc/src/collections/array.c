/* array.c: growable arrays, see array.h. */
#include "array.h"

#define LINES_APART 256

bool pto_grow(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes)
{
    return pto_grow_apart(slot, capacity, need, elem_bytes, 0);
}

bool pto_grow_apart(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes, int32_t place)
{
    int64_t grown = *capacity < 16 ? 16 : *capacity;
    while (grown < need) {
        if (grown > INT64_MAX / 4)
            return false;
        grown *= 2;
    }
    size_t ahead = (size_t)place * LINES_APART;
    if ((uint64_t)grown > ((uint64_t)PTRDIFF_MAX - ahead) / elem_bytes)
        return false;
    char *data;
    memcpy(&data, slot, sizeof data);
    data = realloc(data == NULL ? NULL : data - ahead, (size_t)grown * elem_bytes + ahead);
    if (data == NULL)
        return false;
    data += ahead;
    memcpy(slot, &data, sizeof data);
    *capacity = grown;
    return true;
}

void pto_free_apart(void *array, int32_t place)
{
    if (array != NULL)
        free((char *)array - (size_t)place * LINES_APART);
}
