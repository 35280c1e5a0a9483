// The runtime's rules, from pto_wsp/npu/isa/runtime.py: tests/npu/test_runtime_rules.py --update writes this file.
#pragma once

#include <stdexcept>
#include <string>

namespace rules {

constexpr int k_tensors = 32;
constexpr int k_scalars = 16;
constexpr int k_dims = 5;
constexpr int k_callables = 64;
constexpr int k_scopes = 64;

struct Rule {
    const char *name, *says;
};

constexpr Rule tensors = {"tensors", "a task has at most 32 tensors"};
constexpr Rule scalars = {"scalars", "a task has at most 16 scalars"};
constexpr Rule dims = {"dims", "a tensor has 1 to 5 dimensions"};
constexpr Rule callables = {"callables", "a program has at most 64 kernels"};
constexpr Rule scopes = {"scopes", "scopes nest at most 64 deep, that around all tasks among them"};
constexpr Rule tensors_first = {"tensors_first", "a task's tensors are added before its scalars"};
constexpr Rule arguments_live = {"arguments_live", "what a task is given lives, unchanged, until its submit"};
constexpr Rule inside = {"inside", "a view lies inside its tensor"};
constexpr Rule own_core = {"own_core", "a kernel is submitted for the core that it is made for"};
constexpr Rule not_empty = {"not_empty", "a tensor that the runtime allocates has elements"};
constexpr Rule scope_end = {"scope_end", "a tensor that the runtime allocates is used inside its scope"};
constexpr Rule dependencies_some = {"dependencies_some", "set_dependencies names at least one task, and as many as there are"};
constexpr Rule dependencies_once = {"dependencies_once", "set_dependencies is called at most once for a task"};
constexpr Rule dependencies_live = {"dependencies_live", "the array of set_dependencies lives, unchanged, until the submit"};
constexpr Rule dependencies_valid = {"dependencies_valid", "every id of set_dependencies is that of a task submitted before"};
constexpr Rule get_ref_named = {"get_ref_named", "get_ref is asked of a result that has a name"};
constexpr Rule get_ref_count = {"get_ref_count", "get_ref(k) has k below the number of tensors that the task allocates"};
constexpr Rule given_elements = {"given_elements", "host_build_graph reads elements of tensors that it is given, and of none that tasks write"};
constexpr Rule wait_lookup = {"wait_lookup", "IN and INOUT wait for all tasks that have written overlapping elements; an INOUT stands for those that it covers from then on"};
constexpr Rule wait_output = {"wait_output", "OUT waits for nobody but the task that allocates the tensor"};
constexpr Rule wait_readers = {"wait_readers", "nothing waits for tasks that have read, unless it names them"};

// Ends a run that breaks a rule.
[[noreturn]] inline void refuse(const Rule &rule, const std::string &found) {
    throw std::logic_error(found + ": " + rule.says + " [" + rule.name + "]");
}

}  // namespace rules
