/* array.h: growable arrays. An array is a pointer and a capacity in elements, both owned by whoever declares them; free() releases a plain
   array, pto_free_apart one of pto_grow_apart. Capacities double, so appending costs O(1) amortised. */
#ifndef PTO_ARRAY_H
#define PTO_ARRAY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC visibility push(hidden)

/* Grow the array behind the pointer stored at `slot` to at least `need` elements; false, and nothing changed, when memory ran out.
   memcpy moves the pointer, so that any pointer type may stand behind `slot`. */
bool pto_grow(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes);

/* Grow one of several arrays that are filled side by side, each with a `place` of its own from 0. Large arrays all begin at the begin of a
   page, so their rows would meet in the same few lines of the first-level cache; a place shifts an array away from the others. */
bool pto_grow_apart(void *slot, int64_t *capacity, int64_t need, size_t elem_bytes, int32_t place);
void pto_free_apart(void *array, int32_t place);

#define PTO_RESERVE(array, capacity, need) \
    ((need) <= (capacity) || pto_grow(&(array), &(capacity), (need), sizeof *(array)))

#pragma GCC visibility pop

#endif
