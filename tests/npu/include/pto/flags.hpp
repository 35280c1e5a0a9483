// Order between pipes.
#pragma once

#include "types.hpp"

inline namespace PTO_EMU_FAMILY {

inline void set_flag(pipe_t after, pipe_t before, event_t event, PTO_EMU_AT) {
    pto::emu::set_flag(PTO_EMU_SITE("set_flag"), after, before, event);
}
inline void wait_flag(pipe_t after, pipe_t before, event_t event, PTO_EMU_AT) {
    pto::emu::wait_flag(PTO_EMU_SITE("wait_flag"), after, before, event);
}
inline void pipe_barrier(pipe_t pipe, PTO_EMU_AT) { pto::emu::barrier(PTO_EMU_SITE("pipe_barrier"), pipe); }

}  // namespace PTO_EMU_FAMILY
