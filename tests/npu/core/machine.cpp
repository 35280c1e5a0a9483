#include "machine.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace pto::emu {

namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint8_t kGarbage = 0xa5;

std::string hex(uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

}  // namespace

Space space_of(TileType type) {
    switch (type) {
        case TileType::Vec: return Space::UB;
        case TileType::Mat: return Space::L1;
        case TileType::Left: return Space::L0A;
        case TileType::Right: return Space::L0B;
        case TileType::Acc: return Space::L0C;
        case TileType::Bias: return Space::Bias;
    }
    throw std::logic_error("no such TileType");
}

const char *name_of(Space space) {
    static const char *const names[] = {"UB", "L1", "L0A", "L0B", "L0C", "the bias table"};
    return names[static_cast<int>(space)];
}

const char *name_of(pipe_t pipe) {
    static const char *const names[] = {"PIPE_S", "PIPE_V", "PIPE_M", "PIPE_MTE1", "PIPE_MTE2", "PIPE_MTE3", "PIPE_FIX", "PIPE_ALL"};
    return names[pipe];
}

const char *name_of(Dtype dtype) {
    static const char *const names[] = {"f32", "f16", "bf16", "i32", "u32", "i16", "u16", "i8", "u8", "i64", "u64"};
    return names[static_cast<int>(dtype)];
}

int bytes_of(Dtype dtype) {
    static const int bytes[] = {4, 2, 2, 4, 4, 2, 2, 1, 1, 8, 8};
    return bytes[static_cast<int>(dtype)];
}

// What kernels may use: the top 8 KiB of UB on a2a3 is scratch of some instructions.
uint64_t capacity(Space space, Family family) {
    const bool a2a3 = family == Family::a2a3;
    switch (space) {
        case Space::UB: return (a2a3 ? 184 : 256) * kKiB;
        case Space::L1: return 512 * kKiB;
        case Space::L0A: return 64 * kKiB;
        case Space::L0B: return 64 * kKiB;
        case Space::L0C: return (a2a3 ? 128 : 256) * kKiB;
        case Space::Bias: return (a2a3 ? 1 : 4) * kKiB;
    }
    throw std::logic_error("no such Space");
}

Machine &machine() {
    static Machine one;
    return one;
}

std::string place(const Site &site) {
    const char *slash = std::strrchr(site.file, '/');
    return std::string(slash ? slash + 1 : site.file) + ":" + std::to_string(site.line) + ": " + site.op;
}

void fail(const Site &site, const std::string &what) { throw std::runtime_error(place(site) + ": " + what); }

void Machine::begin(const HostTask *task) {
    task_ = task;
    order_.reset();
    global_.reset();
    sites_.assign(1, Site{"the start of the kernel", "", 0, Family::a5});
    for (bool &stored : stored_) stored = false;
    for (int space = 0; space < kSpaces; ++space) {
        const uint64_t size = capacity(static_cast<Space>(space), Family::a5);
        Memory &memory = memories_[space];
        memory.bytes.assign(size, kGarbage);
        memory.doubts.assign(size, static_cast<uint8_t>(Doubt::never_written));
        memory.unknown.assign(size, 0);
        memory.traces.assign(size / kBlockBytes, Trace());
    }
}

void Machine::end() {
    task_ = nullptr;
    for (int after = 0; after < kPipes; ++after) {
        for (int before = 0; before < kPipes; ++before) {
            for (int event = 0; event < Order::kEvents; ++event) {
                const pipe_t from = static_cast<pipe_t>(after), to = static_cast<pipe_t>(before);
                if (order_.is_set(from, to, event)) {
                    fail(sites_[order_.step_of(from, to, event)], flag_name(from, to, event) + " is set, and nothing waits for it");
                }
            }
        }
    }
    for (const pipe_t pipe : {PIPE_MTE3, PIPE_FIX}) {
        if (stored_[pipe] && !order_.drained(pipe)) {
            fail(sites_.back(), std::string("the kernel ends before its stores: no flag from ") + name_of(pipe) +
                 " to PIPE_S is waited for behind the last of them");
        }
    }
}

void Machine::note(const Site &site) {
    if (!running()) fail(site, "no task runs: pto_emulator_begin has not been called");
    sites_.push_back(site);
}

void Machine::check_pipe(const Site &site, pipe_t pipe) const {
    const bool of_cube = pipe == PIPE_M || pipe == PIPE_MTE1 || pipe == PIPE_FIX;
    if (task_->cube ? pipe == PIPE_V : of_cube) {
        fail(site, std::string(name_of(pipe)) + " is no pipe of a " + (task_->cube ? "cube" : "vector") + " core");
    }
}

void Machine::start(const Site &site, pipe_t pipe) {
    check_pipe(site, pipe);
    order_.begin(pipe, static_cast<uint32_t>(sites_.size() - 1));
}

void Machine::report(const Conflict &conflict, bool write, const std::string &where) const {
    const Site &earlier = sites_[conflict.step];
    const bool same = conflict.pipe == order_.current();
    const std::string flag = std::string("a flag from ") + name_of(conflict.pipe) + " to " + name_of(order_.current());
    const std::string missing = same ? std::string("pipe_barrier(") + name_of(conflict.pipe) + ")" : flag;
    fail(site(), std::string(write ? "writes " : "reads ") + where + ", which " + place(earlier) +
                     (conflict.earlier_wrote ? " wrote" : " read") + " on " + name_of(conflict.pipe) + ", without " + missing + " between");
}

void Machine::touch(Space space, uint64_t first, uint64_t last, bool write) {
    Memory &memory = this->memory(space);
    for (uint64_t block = first / kBlockBytes; block < (last + kBlockBytes - 1) / kBlockBytes; ++block) {
        const Conflict conflict = order_.touch(memory.traces[block], write);
        if (conflict.found) report(conflict, write, std::string(name_of(space)) + " at " + hex(block * kBlockBytes));
    }
}

void Machine::touch_global(uint64_t first, uint64_t last, bool write) {
    const Conflict conflict = global_.touch(order_, first, last, write);
    if (write) stored_[order_.current()] = true;
    if (conflict.found) report(conflict, write, "global memory");
}

std::string Machine::flag_name(pipe_t after, pipe_t before, int event) const {
    return std::string("flag ") + name_of(after) + " to " + name_of(before) + ", EVENT_ID" + std::to_string(event) + ",";
}

void Machine::set_flag(const Site &site, pipe_t after, pipe_t before, int event) {
    note(site);
    if (event < 0 || event >= Order::kEvents) fail(site, "event " + std::to_string(event) + " is none of 0 to 7");
    if (after >= PIPE_ALL || before >= PIPE_ALL || after == before) fail(site, "a flag goes from one pipe to another");
    check_pipe(site, after);
    check_pipe(site, before);
    if (order_.is_set(after, before, event)) {
        fail(site, flag_name(after, before, event) + " is set already, by " + place(sites_[order_.step_of(after, before, event)]));
    }
    if (!order_.was_taken(after, before, event)) {
        fail(site, flag_name(after, before, event) + " may be set before " + name_of(before) +
             " has taken the last one: nothing orders them");
    }
    order_.set(after, before, event, static_cast<uint32_t>(sites_.size() - 1));
}

void Machine::wait_flag(const Site &site, pipe_t after, pipe_t before, int event) {
    note(site);
    if (event < 0 || event >= Order::kEvents) fail(site, "event " + std::to_string(event) + " is none of 0 to 7");
    if (after >= PIPE_ALL || before >= PIPE_ALL || after == before) fail(site, "a flag goes from one pipe to another");
    check_pipe(site, after);
    check_pipe(site, before);
    if (!order_.is_set(after, before, event)) fail(site, flag_name(after, before, event) + " is not set: the core waits forever");
    order_.wait(after, before, event);
}

void Machine::barrier(const Site &site, pipe_t pipe) {
    note(site);
    if (pipe != PIPE_ALL) check_pipe(site, pipe);
    order_.barrier(pipe);
}

void set_flag(const Site &site, pipe_t after, pipe_t before, int event) { machine().set_flag(site, after, before, event); }
void wait_flag(const Site &site, pipe_t after, pipe_t before, int event) { machine().wait_flag(site, after, before, event); }
void barrier(const Site &site, pipe_t pipe) { machine().barrier(site, pipe); }

}  // namespace pto::emu

extern "C" void pto_emulator_begin(const HostTask *task) { pto::emu::machine().begin(task); }
extern "C" void pto_emulator_end() { pto::emu::machine().end(); }
