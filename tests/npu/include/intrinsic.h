// What a kernel asks of the task that it runs in.
#pragma once

#include <cstdint>

#include "host_task.h"

inline int32_t get_block_idx(const int64_t *args) { return static_cast<int32_t>(args[kBlockIdxSlot]); }
inline int32_t get_block_num(const int64_t *args) { return static_cast<int32_t>(args[kBlockNumSlot]); }
