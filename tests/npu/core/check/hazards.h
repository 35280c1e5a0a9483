// Which accesses are ordered: a clock for each pipe, carried by flags, against the last accesses of every piece of memory.
//
// Pipes are queues. Each takes its instructions in order, after what the scalar unit did before; of these only the scalar and the matrix
// unit surely finish one before the next. An earlier access is done for a later one if the later pipe's clock has reached its number.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "pto/types.hpp"

namespace pto::emu {

constexpr int kPipes = PIPE_ALL;
using Clock = std::array<uint32_t, kPipes>;

// Who touched a piece of memory last: numbers of instructions within their pipe, and which of all instructions that was.
struct Trace {
    uint32_t write = 0, write_step = 0;
    uint8_t write_pipe = 0;
    std::array<uint32_t, kPipes> read{}, read_step{};
};

struct Conflict {
    bool found = false, earlier_wrote = false;
    pipe_t pipe = PIPE_ALL;
    uint32_t step = 0;
};

class Order {
  public:
    void reset();
    void begin(pipe_t pipe, uint32_t step);   // an instruction of that pipe: the accesses that follow are its own
    void end();
    void set(pipe_t after, pipe_t before, int event, uint32_t step);
    void wait(pipe_t after, pipe_t before, int event);
    void barrier(pipe_t pipe);
    Conflict touch(Trace &trace, bool write) const;

    bool is_set(pipe_t after, pipe_t before, int event) const { return flags_[slot(after, before, event)].set; }
    bool was_taken(pipe_t after, pipe_t before, int event) const;  // the last wait for it is done when `after` sets it again
    uint32_t step_of(pipe_t after, pipe_t before, int event) const { return flags_[slot(after, before, event)].step; }
    pipe_t current() const { return pipe_; }
    bool drained(pipe_t pipe) const { return clocks_[PIPE_S][pipe] >= issued_[pipe]; }

    static constexpr int kEvents = 8;

  private:
    struct Flag {
        bool set = false;
        Clock clock{};
        uint32_t step = 0;
        uint32_t taken = 0;  // the number of the last wait, in the waiting pipe
    };
    static int slot(pipe_t after, pipe_t before, int event) { return (after * kPipes + before) * kEvents + event; }
    static void join(Clock &into, const Clock &from);
    void dispatch(pipe_t pipe);

    std::array<Clock, kPipes> clocks_{};
    Clock issued_{};
    std::array<Flag, kPipes * kPipes * kEvents> flags_{};
    pipe_t pipe_ = PIPE_S;
    uint32_t step_ = 0;
};

// Traces of the bytes of global memory: pieces that were touched as one.
class GlobalTraces {
  public:
    void reset() { pieces_.clear(); }
    Conflict touch(const Order &order, uint64_t first, uint64_t last, bool write);

  private:
    struct Piece {
        uint64_t last;
        Trace trace;
    };
    void split(uint64_t at);
    std::map<uint64_t, Piece> pieces_;  // by first byte
};

}  // namespace pto::emu
