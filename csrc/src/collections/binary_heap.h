/* binary_heap.h: binary heaps in arrays of any entries. before(a, b) tells whether `a` leaves the heap before `b`. The caller owns the array
   and counts its entries. */
#ifndef PTO_BINARY_HEAP_H
#define PTO_BINARY_HEAP_H
#include <stdint.h>

/* Insert `entry` into a heap that has `n` entries with it: data[n - 1] is free.
   Invariant of the loop: all parents above `hole_` come before their children, and `entry` may stand at `hole_`. */
#define PTO_SIFT_UP(data, n, entry, before) \
    do { \
        int64_t hole_ = (n) - 1; \
        for (; hole_ > 0 && before(entry, (data)[(hole_ - 1) / 2]); hole_ = (hole_ - 1) / 2) \
            (data)[hole_] = (data)[(hole_ - 1) / 2]; \
        (data)[hole_] = entry; \
    } while (0)

/* Remove data[0] from a heap that has `n` entries without it: `moved`, which stood at data[n], takes the free place.
   Invariant of the loop: every entry but the one at `hole_` comes before its children. */
#define PTO_SIFT_DOWN(data, n, moved, before) \
    do { \
        int64_t hole_ = 0; \
        for (int64_t child_; (child_ = 2 * hole_ + 1) < (n); hole_ = child_) { \
            if (child_ + 1 < (n) && before((data)[child_ + 1], (data)[child_])) \
                child_++; \
            if (!before((data)[child_], moved)) \
                break; \
            (data)[hole_] = (data)[child_]; \
        } \
        (data)[hole_] = moved; \
    } while (0)

#endif
