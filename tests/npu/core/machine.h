// The emulated core: its memories with what is known of each byte, and the task that it runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/hazards.h"
#include "host_task.h"
#include "pto/types.hpp"

namespace pto::emu {

// Why the value of a byte means nothing.
enum class Doubt : uint8_t { none, never_written, out_of_range, scratch, some_bits };

enum class Space : uint8_t { UB, L1, L0A, L0B, L0C, Bias };
constexpr int kSpaces = 6;
constexpr uint64_t kBlockBytes = 32;

Space space_of(TileType type);
const char *name_of(Space space);
const char *name_of(pipe_t pipe);
const char *name_of(Dtype dtype);
uint64_t capacity(Space space, Family family);
int bytes_of(Dtype dtype);

struct Memory {
    std::vector<uint8_t> bytes, doubts;
    std::vector<uint8_t> unknown;   // of a byte in doubt as some_bits: which bits
    std::vector<Trace> traces;  // of 32 bytes each, which is what pipes move at once
};

class Machine {
  public:
    void begin(const HostTask *task);
    void end();
    bool running() const { return task_ != nullptr; }
    const HostTask &task() const { return *task_; }

    void start(const Site &site, pipe_t pipe);   // an instruction, before its accesses
    void finish() { order_.end(); }
    Memory &memory(Space space) { return memories_[static_cast<int>(space)]; }
    // Note an access of the running instruction, to bytes of a memory of the core, or of the host.
    void touch(Space space, uint64_t first, uint64_t last, bool write);
    void touch_global(uint64_t first, uint64_t last, bool write);

    void set_flag(const Site &site, pipe_t after, pipe_t before, int event);
    void wait_flag(const Site &site, pipe_t after, pipe_t before, int event);
    void barrier(const Site &site, pipe_t pipe);
    bool is_up(pipe_t after, pipe_t before, int event) const { return order_.is_set(after, before, event); }
    const Site &site() const { return sites_.back(); }
    void note(const Site &site);                 // before the checks of an instruction

  private:
    void check_pipe(const Site &site, pipe_t pipe) const;
    std::string flag_name(pipe_t after, pipe_t before, int event) const;
    [[noreturn]] void report(const Conflict &conflict, bool write, const std::string &where) const;

    const HostTask *task_ = nullptr;
    Memory memories_[kSpaces];
    Order order_;
    GlobalTraces global_;
    std::vector<Site> sites_;                    // of every instruction so far; its place is its step
    bool stored_[kPipes] = {};
};

Machine &machine();
[[noreturn]] void fail(const Site &site, const std::string &what);
std::string place(const Site &site);             // file:line: OP

}  // namespace pto::emu
