/* pto_layout.h: the sizes and offsets of the ABI texts' structs, as this compiler sees them.

   An artifact includes it, puts PTO_LAYOUT_ARTIFACT into an array of its own and exports that; the library's table has
   the same rows and more. Equal names with unequal numbers mean that the two were built from different texts:

       static const pto_layout pto_layout_rows[] = {PTO_LAYOUT_ARTIFACT};
*/
#ifndef PTO_LAYOUT_H
#define PTO_LAYOUT_H
#include <stddef.h>

#include "pto_wsp.h"

#define PTO_LAYOUT_STRUCT(type) {#type, (int64_t)sizeof(type), 0},
#define PTO_LAYOUT_FIELD(type, field) \
    {#type "." #field, (int64_t)sizeof(((type *)0)->field), (int64_t)offsetof(type, field)},

/* what an artifact uses */
#define PTO_LAYOUT_ARTIFACT \
    PTO_LAYOUT_STRUCT(pto_arg) PTO_LAYOUT_FIELD(pto_arg, data) PTO_LAYOUT_FIELD(pto_arg, extent) \
    PTO_LAYOUT_FIELD(pto_arg, stride) PTO_LAYOUT_FIELD(pto_arg, buffer) PTO_LAYOUT_FIELD(pto_arg, flags) \
    PTO_LAYOUT_FIELD(pto_arg, elem_bytes) PTO_LAYOUT_FIELD(pto_arg, reserved) \
    PTO_LAYOUT_STRUCT(pto_fault) PTO_LAYOUT_FIELD(pto_fault, row) PTO_LAYOUT_FIELD(pto_fault, col) \
    PTO_LAYOUT_FIELD(pto_fault, value) PTO_LAYOUT_FIELD(pto_fault, lower) PTO_LAYOUT_FIELD(pto_fault, upper) \
    PTO_LAYOUT_STRUCT(pto_context) PTO_LAYOUT_FIELD(pto_context, node) PTO_LAYOUT_FIELD(pto_context, prints) PTO_LAYOUT_FIELD(pto_context, print) \
    PTO_LAYOUT_FIELD(pto_context, fault) PTO_LAYOUT_FIELD(pto_context, cancel) \
    PTO_LAYOUT_STRUCT(pto_kernel) PTO_LAYOUT_FIELD(pto_kernel, entry) PTO_LAYOUT_FIELD(pto_kernel, scratch_bytes) \
    PTO_LAYOUT_STRUCT(pto_task) PTO_LAYOUT_FIELD(pto_task, kernel) PTO_LAYOUT_FIELD(pto_task, site) PTO_LAYOUT_FIELD(pto_task, worker) \
    PTO_LAYOUT_FIELD(pto_task, cost) PTO_LAYOUT_FIELD(pto_task, n_args) PTO_LAYOUT_FIELD(pto_task, n_scalars) \
    PTO_LAYOUT_FIELD(pto_task, n_index) PTO_LAYOUT_FIELD(pto_task, n_order) PTO_LAYOUT_FIELD(pto_task, args) \
    PTO_LAYOUT_FIELD(pto_task, scalars) PTO_LAYOUT_FIELD(pto_task, index) PTO_LAYOUT_FIELD(pto_task, order) \
    PTO_LAYOUT_FIELD(pto_task, n_after) PTO_LAYOUT_FIELD(pto_task, stream) PTO_LAYOUT_FIELD(pto_task, after) \
    PTO_LAYOUT_FIELD(pto_task, lane) PTO_LAYOUT_FIELD(pto_task, pool) PTO_LAYOUT_FIELD(pto_task, priority) \
    PTO_LAYOUT_FIELD(pto_task, position) PTO_LAYOUT_FIELD(pto_task, bytes) PTO_LAYOUT_FIELD(pto_task, ranks) \
    PTO_LAYOUT_STRUCT(pto_mark) PTO_LAYOUT_FIELD(pto_mark, stream) PTO_LAYOUT_FIELD(pto_mark, flags) \
    PTO_LAYOUT_FIELD(pto_mark, why) PTO_LAYOUT_FIELD(pto_mark, stall) PTO_LAYOUT_FIELD(pto_mark, site) \
    PTO_LAYOUT_FIELD(pto_mark, n_before) PTO_LAYOUT_FIELD(pto_mark, n_order) PTO_LAYOUT_FIELD(pto_mark, n_args) \
    PTO_LAYOUT_FIELD(pto_mark, before) PTO_LAYOUT_FIELD(pto_mark, order) PTO_LAYOUT_FIELD(pto_mark, args) \
    PTO_LAYOUT_FIELD(pto_mark, delay) \
    PTO_LAYOUT_STRUCT(pto_stuck) PTO_LAYOUT_FIELD(pto_stuck, stream) PTO_LAYOUT_FIELD(pto_stuck, site) \
    PTO_LAYOUT_FIELD(pto_stuck, waits_for) PTO_LAYOUT_FIELD(pto_stuck, channel) PTO_LAYOUT_FIELD(pto_stuck, position) \
    PTO_LAYOUT_FIELD(pto_stuck, peer) PTO_LAYOUT_FIELD(pto_stuck, reserved) \
    PTO_LAYOUT_STRUCT(pto_tensor) PTO_LAYOUT_FIELD(pto_tensor, data) PTO_LAYOUT_FIELD(pto_tensor, dim) \
    PTO_LAYOUT_FIELD(pto_tensor, stride) PTO_LAYOUT_FIELD(pto_tensor, buffer) PTO_LAYOUT_FIELD(pto_tensor, rank) \
    PTO_LAYOUT_STRUCT(pto_bindings) PTO_LAYOUT_FIELD(pto_bindings, tensors) PTO_LAYOUT_FIELD(pto_bindings, symbols) \
    PTO_LAYOUT_FIELD(pto_bindings, n_tensors) PTO_LAYOUT_FIELD(pto_bindings, n_symbols) \
    PTO_LAYOUT_STRUCT(pto_guard) PTO_LAYOUT_FIELD(pto_guard, guard) PTO_LAYOUT_FIELD(pto_guard, n_index) \
    PTO_LAYOUT_FIELD(pto_guard, found) PTO_LAYOUT_FIELD(pto_guard, lower) PTO_LAYOUT_FIELD(pto_guard, upper) \
    PTO_LAYOUT_FIELD(pto_guard, index) \
    PTO_LAYOUT_STRUCT(pto_sink) PTO_LAYOUT_FIELD(pto_sink, submit) PTO_LAYOUT_FIELD(pto_sink, join_open) \
    PTO_LAYOUT_FIELD(pto_sink, join_add) PTO_LAYOUT_FIELD(pto_sink, join_close) PTO_LAYOUT_FIELD(pto_sink, fail) \
    PTO_LAYOUT_FIELD(pto_sink, mark) PTO_LAYOUT_FIELD(pto_sink, fresh) PTO_LAYOUT_FIELD(pto_sink, release) \
    PTO_LAYOUT_FIELD(pto_sink, stuck) PTO_LAYOUT_FIELD(pto_sink, cancel) \
    PTO_LAYOUT_FIELD(pto_sink, status) PTO_LAYOUT_FIELD(pto_sink, reserved) \
    PTO_LAYOUT_STRUCT(pto_layout) PTO_LAYOUT_FIELD(pto_layout, name) PTO_LAYOUT_FIELD(pto_layout, size_bytes) \
    PTO_LAYOUT_FIELD(pto_layout, offset_bytes) \
    PTO_LAYOUT_STRUCT(pto_artifact) PTO_LAYOUT_FIELD(pto_artifact, abi_version) \
    PTO_LAYOUT_FIELD(pto_artifact, n_kernels) PTO_LAYOUT_FIELD(pto_artifact, n_layout) \
    PTO_LAYOUT_FIELD(pto_artifact, reserved) PTO_LAYOUT_FIELD(pto_artifact, kernels) \
    PTO_LAYOUT_FIELD(pto_artifact, layout) PTO_LAYOUT_FIELD(pto_artifact, orchestrate) \
    PTO_LAYOUT_FIELD(pto_artifact, digest)

/* all of the text */
#define PTO_LAYOUT_ALL \
    PTO_LAYOUT_ARTIFACT \
    PTO_LAYOUT_STRUCT(pto_record_options) PTO_LAYOUT_FIELD(pto_record_options, max_tasks) PTO_LAYOUT_FIELD(pto_record_options, window) \
    PTO_LAYOUT_FIELD(pto_record_options, arena_bytes) PTO_LAYOUT_FIELD(pto_record_options, infer) \
    PTO_LAYOUT_FIELD(pto_record_options, poison) PTO_LAYOUT_FIELD(pto_record_options, keep) \
    PTO_LAYOUT_FIELD(pto_record_options, window_unit) PTO_LAYOUT_FIELD(pto_record_options, forgets_nothing) \
    PTO_LAYOUT_FIELD(pto_record_options, reserved) \
    PTO_LAYOUT_STRUCT(pto_memory) PTO_LAYOUT_FIELD(pto_memory, peak_bytes) PTO_LAYOUT_FIELD(pto_memory, held_bytes) \
    PTO_LAYOUT_FIELD(pto_memory, n_gates) \
    PTO_LAYOUT_STRUCT(pto_columns) PTO_LAYOUT_FIELD(pto_columns, n_tasks) PTO_LAYOUT_FIELD(pto_columns, n_nodes) \
    PTO_LAYOUT_FIELD(pto_columns, n_edges) PTO_LAYOUT_FIELD(pto_columns, n_marks) PTO_LAYOUT_FIELD(pto_columns, first_node) \
    PTO_LAYOUT_FIELD(pto_columns, first_task) PTO_LAYOUT_FIELD(pto_columns, total_tasks) PTO_LAYOUT_FIELD(pto_columns, node_kind) \
    PTO_LAYOUT_FIELD(pto_columns, node_task) PTO_LAYOUT_FIELD(pto_columns, pred_begin) PTO_LAYOUT_FIELD(pto_columns, edge_src) \
    PTO_LAYOUT_FIELD(pto_columns, edge_why) PTO_LAYOUT_FIELD(pto_columns, edge_arg) PTO_LAYOUT_FIELD(pto_columns, task_node) \
    PTO_LAYOUT_FIELD(pto_columns, task_kernel) PTO_LAYOUT_FIELD(pto_columns, task_site) PTO_LAYOUT_FIELD(pto_columns, task_worker) \
    PTO_LAYOUT_FIELD(pto_columns, task_cost) PTO_LAYOUT_FIELD(pto_columns, task_stream) PTO_LAYOUT_FIELD(pto_columns, task_lane) \
    PTO_LAYOUT_FIELD(pto_columns, task_pool) PTO_LAYOUT_FIELD(pto_columns, task_priority) PTO_LAYOUT_FIELD(pto_columns, task_position) \
    PTO_LAYOUT_FIELD(pto_columns, task_bytes) PTO_LAYOUT_FIELD(pto_columns, task_ranks) PTO_LAYOUT_FIELD(pto_columns, arg_begin) PTO_LAYOUT_FIELD(pto_columns, args) \
    PTO_LAYOUT_FIELD(pto_columns, scalar_begin) PTO_LAYOUT_FIELD(pto_columns, scalars) PTO_LAYOUT_FIELD(pto_columns, index_begin) \
    PTO_LAYOUT_FIELD(pto_columns, index) PTO_LAYOUT_FIELD(pto_columns, mark_node) PTO_LAYOUT_FIELD(pto_columns, mark_delay) \
    PTO_LAYOUT_FIELD(pto_columns, mark_stream) PTO_LAYOUT_FIELD(pto_columns, mark_site) PTO_LAYOUT_FIELD(pto_columns, mark_flags) \
    PTO_LAYOUT_FIELD(pto_columns, mark_stall) \
    PTO_LAYOUT_STRUCT(pto_execute_options) PTO_LAYOUT_FIELD(pto_execute_options, order_seed) \
    PTO_LAYOUT_FIELD(pto_execute_options, threads) PTO_LAYOUT_FIELD(pto_execute_options, places) \
    PTO_LAYOUT_FIELD(pto_execute_options, by_priority) PTO_LAYOUT_FIELD(pto_execute_options, reserved) \
    PTO_LAYOUT_FIELD(pto_execute_options, cancel) PTO_LAYOUT_FIELD(pto_execute_options, prints) PTO_LAYOUT_FIELD(pto_execute_options, sanitizer) \
    PTO_LAYOUT_FIELD(pto_execute_options, wall) PTO_LAYOUT_FIELD(pto_execute_options, ranks) \
    PTO_LAYOUT_STRUCT(pto_transfer) \
    PTO_LAYOUT_FIELD(pto_transfer, data) PTO_LAYOUT_FIELD(pto_transfer, extent) PTO_LAYOUT_FIELD(pto_transfer, stride) \
    PTO_LAYOUT_FIELD(pto_transfer, bytes) PTO_LAYOUT_FIELD(pto_transfer, order) PTO_LAYOUT_FIELD(pto_transfer, key) PTO_LAYOUT_FIELD(pto_transfer, node) PTO_LAYOUT_FIELD(pto_transfer, elem_bytes) \
    PTO_LAYOUT_FIELD(pto_transfer, peer) PTO_LAYOUT_FIELD(pto_transfer, receives) PTO_LAYOUT_FIELD(pto_transfer, site) \
    PTO_LAYOUT_STRUCT(pto_spread) \
    PTO_LAYOUT_FIELD(pto_spread, data) PTO_LAYOUT_FIELD(pto_spread, copy_bytes) \
    PTO_LAYOUT_STRUCT(pto_ranks_options) \
    PTO_LAYOUT_FIELD(pto_ranks_options, rank) PTO_LAYOUT_FIELD(pto_ranks_options, n_ranks) PTO_LAYOUT_FIELD(pto_ranks_options, is_move) \
    PTO_LAYOUT_FIELD(pto_ranks_options, own_rank) PTO_LAYOUT_FIELD(pto_ranks_options, own_shift_bytes) PTO_LAYOUT_FIELD(pto_ranks_options, spread) \
    PTO_LAYOUT_FIELD(pto_ranks_options, n_spread) PTO_LAYOUT_FIELD(pto_ranks_options, request_bytes) \
    PTO_LAYOUT_FIELD(pto_ranks_options, sent_bytes) PTO_LAYOUT_FIELD(pto_ranks_options, spin_ns) PTO_LAYOUT_FIELD(pto_ranks_options, progress) \
    PTO_LAYOUT_FIELD(pto_ranks_options, user) PTO_LAYOUT_FIELD(pto_ranks_options, start) PTO_LAYOUT_FIELD(pto_ranks_options, test) \
    PTO_LAYOUT_FIELD(pto_ranks_options, status_bytes) \
    PTO_LAYOUT_STRUCT(pto_wall_row) PTO_LAYOUT_FIELD(pto_wall_row, start_ns) PTO_LAYOUT_FIELD(pto_wall_row, end_ns) \
    PTO_LAYOUT_FIELD(pto_wall_row, thread) PTO_LAYOUT_FIELD(pto_wall_row, reserved) \
    PTO_LAYOUT_STRUCT(pto_wall_view) PTO_LAYOUT_FIELD(pto_wall_view, n) PTO_LAYOUT_FIELD(pto_wall_view, is_cut) \
    PTO_LAYOUT_FIELD(pto_wall_view, reserved) PTO_LAYOUT_FIELD(pto_wall_view, row_ns) PTO_LAYOUT_FIELD(pto_wall_view, rows) \
    PTO_LAYOUT_STRUCT(pto_sanitizer_options) PTO_LAYOUT_FIELD(pto_sanitizer_options, keep) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, n_sites) PTO_LAYOUT_FIELD(pto_sanitizer_options, n_tensors) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, n_kernels) PTO_LAYOUT_FIELD(pto_sanitizer_options, tensors) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, elem_bytes) PTO_LAYOUT_FIELD(pto_sanitizer_options, undefined) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, site_begin) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, site_tensors) PTO_LAYOUT_FIELD(pto_sanitizer_options, site_combines) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, own_body) \
    PTO_LAYOUT_FIELD(pto_sanitizer_options, apart) PTO_LAYOUT_FIELD(pto_sanitizer_options, n_apart) \
    PTO_LAYOUT_STRUCT(pto_race) PTO_LAYOUT_FIELD(pto_race, first_task) \
    PTO_LAYOUT_FIELD(pto_race, second_task) PTO_LAYOUT_FIELD(pto_race, first_index) \
    PTO_LAYOUT_FIELD(pto_race, second_index) PTO_LAYOUT_FIELD(pto_race, n_first_index) \
    PTO_LAYOUT_FIELD(pto_race, n_second_index) PTO_LAYOUT_FIELD(pto_race, first_site) \
    PTO_LAYOUT_FIELD(pto_race, second_site) PTO_LAYOUT_FIELD(pto_race, first_arg) \
    PTO_LAYOUT_FIELD(pto_race, second_arg) PTO_LAYOUT_FIELD(pto_race, has_regions) PTO_LAYOUT_FIELD(pto_race, base) \
    PTO_LAYOUT_FIELD(pto_race, reserved) PTO_LAYOUT_FIELD(pto_race, first_region) \
    PTO_LAYOUT_FIELD(pto_race, second_region) \
    PTO_LAYOUT_STRUCT(pto_misuse) PTO_LAYOUT_FIELD(pto_misuse, task) PTO_LAYOUT_FIELD(pto_misuse, index) \
    PTO_LAYOUT_FIELD(pto_misuse, n_index) PTO_LAYOUT_FIELD(pto_misuse, site) \
    PTO_LAYOUT_FIELD(pto_misuse, kind) PTO_LAYOUT_FIELD(pto_misuse, arg) PTO_LAYOUT_FIELD(pto_misuse, row) \
    PTO_LAYOUT_FIELD(pto_misuse, col) PTO_LAYOUT_FIELD(pto_misuse, n_elements) \
    PTO_LAYOUT_STRUCT(pto_sanitizer_report) PTO_LAYOUT_FIELD(pto_sanitizer_report, n_pairs) \
    PTO_LAYOUT_FIELD(pto_sanitizer_report, n_races) PTO_LAYOUT_FIELD(pto_sanitizer_report, n_unchecked) \
    PTO_LAYOUT_FIELD(pto_sanitizer_report, n_unwatched) PTO_LAYOUT_FIELD(pto_sanitizer_report, n_rows) \
    PTO_LAYOUT_FIELD(pto_sanitizer_report, reserved) PTO_LAYOUT_FIELD(pto_sanitizer_report, races) \
    PTO_LAYOUT_FIELD(pto_sanitizer_report, misuse) \
    PTO_LAYOUT_STRUCT(pto_prints_options) PTO_LAYOUT_FIELD(pto_prints_options, max_bytes) \
    PTO_LAYOUT_FIELD(pto_prints_options, threshold) PTO_LAYOUT_FIELD(pto_prints_options, edge) \
    PTO_LAYOUT_STRUCT(pto_printed) PTO_LAYOUT_FIELD(pto_printed, task) PTO_LAYOUT_FIELD(pto_printed, order) \
    PTO_LAYOUT_FIELD(pto_printed, index) PTO_LAYOUT_FIELD(pto_printed, n_index) PTO_LAYOUT_FIELD(pto_printed, site) \
    PTO_LAYOUT_FIELD(pto_printed, statement) PTO_LAYOUT_FIELD(pto_printed, reserved) \
    PTO_LAYOUT_FIELD(pto_printed, rows) PTO_LAYOUT_FIELD(pto_printed, cols) PTO_LAYOUT_FIELD(pto_printed, kept_rows) \
    PTO_LAYOUT_FIELD(pto_printed, kept_cols) PTO_LAYOUT_FIELD(pto_printed, data) \
    PTO_LAYOUT_FIELD(pto_printed, size_bytes) \
    PTO_LAYOUT_STRUCT(pto_prints_view) PTO_LAYOUT_FIELD(pto_prints_view, n) PTO_LAYOUT_FIELD(pto_prints_view, n_total) \
    PTO_LAYOUT_FIELD(pto_prints_view, rows) PTO_LAYOUT_FIELD(pto_prints_view, data) \
    PTO_LAYOUT_STRUCT(pto_execute_result) PTO_LAYOUT_FIELD(pto_execute_result, failed_task) \
    PTO_LAYOUT_FIELD(pto_execute_result, failed_guard) PTO_LAYOUT_FIELD(pto_execute_result, threads) \
    PTO_LAYOUT_FIELD(pto_execute_result, n_run) PTO_LAYOUT_FIELD(pto_execute_result, fault) \
    PTO_LAYOUT_STRUCT(pto_sim_options) PTO_LAYOUT_FIELD(pto_sim_options, n_workers) PTO_LAYOUT_FIELD(pto_sim_options, pool_size) \
    PTO_LAYOUT_FIELD(pto_sim_options, n_pools) PTO_LAYOUT_FIELD(pto_sim_options, keep_trace) \
    PTO_LAYOUT_FIELD(pto_sim_options, is_shared) PTO_LAYOUT_FIELD(pto_sim_options, steals) \
    PTO_LAYOUT_FIELD(pto_sim_options, is_calendar) PTO_LAYOUT_FIELD(pto_sim_options, timing) \
    PTO_LAYOUT_FIELD(pto_sim_options, starts) PTO_LAYOUT_FIELD(pto_sim_options, n_starts) \
    PTO_LAYOUT_FIELD(pto_sim_options, timing_n) PTO_LAYOUT_FIELD(pto_sim_options, release_num) \
    PTO_LAYOUT_FIELD(pto_sim_options, release_den) PTO_LAYOUT_FIELD(pto_sim_options, window) \
    PTO_LAYOUT_FIELD(pto_sim_options, window_unit) PTO_LAYOUT_FIELD(pto_sim_options, window_mode) \
    PTO_LAYOUT_FIELD(pto_sim_options, start_after) PTO_LAYOUT_FIELD(pto_sim_options, submit_cycles) \
    PTO_LAYOUT_FIELD(pto_sim_options, dispatch_cycles) PTO_LAYOUT_FIELD(pto_sim_options, retire_cycles) \
    PTO_LAYOUT_FIELD(pto_sim_options, bytes_per_cycle) PTO_LAYOUT_FIELD(pto_sim_options, interruptible) \
    PTO_LAYOUT_FIELD(pto_sim_options, n_more) PTO_LAYOUT_FIELD(pto_sim_options, more) \
    PTO_LAYOUT_FIELD(pto_sim_options, hop_cycles) PTO_LAYOUT_FIELD(pto_sim_options, grid_columns) \
    PTO_LAYOUT_FIELD(pto_sim_options, route) PTO_LAYOUT_FIELD(pto_sim_options, n_axes) PTO_LAYOUT_FIELD(pto_sim_options, axes) \
    PTO_LAYOUT_FIELD(pto_sim_options, rank_workers) PTO_LAYOUT_FIELD(pto_sim_options, link_pool) \
    PTO_LAYOUT_FIELD(pto_sim_options, link_buffers) \
    PTO_LAYOUT_STRUCT(pto_sim_hop) PTO_LAYOUT_FIELD(pto_sim_hop, task) PTO_LAYOUT_FIELD(pto_sim_hop, executor) \
    PTO_LAYOUT_FIELD(pto_sim_hop, ready) PTO_LAYOUT_FIELD(pto_sim_hop, start) PTO_LAYOUT_FIELD(pto_sim_hop, end) \
    PTO_LAYOUT_FIELD(pto_sim_hop, held_by) \
    PTO_LAYOUT_STRUCT(pto_window) PTO_LAYOUT_FIELD(pto_window, size) PTO_LAYOUT_FIELD(pto_window, unit) \
    PTO_LAYOUT_FIELD(pto_window, mode) \
    PTO_LAYOUT_STRUCT(pto_window_use) PTO_LAYOUT_FIELD(pto_window_use, stalls) \
    PTO_LAYOUT_FIELD(pto_window_use, stall_cycles) PTO_LAYOUT_FIELD(pto_window_use, high_water) \
    PTO_LAYOUT_STRUCT(pto_sim_result) PTO_LAYOUT_FIELD(pto_sim_result, total_cycles) PTO_LAYOUT_FIELD(pto_sim_result, n_tasks) \
    PTO_LAYOUT_FIELD(pto_sim_result, n_executors) PTO_LAYOUT_FIELD(pto_sim_result, critical_path) \
    PTO_LAYOUT_FIELD(pto_sim_result, work) PTO_LAYOUT_FIELD(pto_sim_result, window_stalls) \
    PTO_LAYOUT_FIELD(pto_sim_result, window_stall_cycles) PTO_LAYOUT_FIELD(pto_sim_result, window_high_water) \
    PTO_LAYOUT_FIELD(pto_sim_result, windows) PTO_LAYOUT_FIELD(pto_sim_result, failed_window) \
    PTO_LAYOUT_FIELD(pto_sim_result, failed_need) \
    PTO_LAYOUT_FIELD(pto_sim_result, failed_task) PTO_LAYOUT_FIELD(pto_sim_result, stalls) \
    PTO_LAYOUT_FIELD(pto_sim_result, stall_cycles) PTO_LAYOUT_FIELD(pto_sim_result, memory_cycles) \
    PTO_LAYOUT_FIELD(pto_sim_result, pool) PTO_LAYOUT_FIELD(pto_sim_result, busy) PTO_LAYOUT_FIELD(pto_sim_result, waiting) \
    PTO_LAYOUT_FIELD(pto_sim_result, late) PTO_LAYOUT_FIELD(pto_sim_result, tasks_run) PTO_LAYOUT_FIELD(pto_sim_result, submit) \
    PTO_LAYOUT_FIELD(pto_sim_result, start) PTO_LAYOUT_FIELD(pto_sim_result, end) PTO_LAYOUT_FIELD(pto_sim_result, complete) \
    PTO_LAYOUT_FIELD(pto_sim_result, ready) PTO_LAYOUT_FIELD(pto_sim_result, executor) PTO_LAYOUT_FIELD(pto_sim_result, held) \
    PTO_LAYOUT_FIELD(pto_sim_result, held_by) PTO_LAYOUT_FIELD(pto_sim_result, hops) PTO_LAYOUT_FIELD(pto_sim_result, n_hops) \
    PTO_LAYOUT_STRUCT(pto_run_options) PTO_LAYOUT_FIELD(pto_run_options, orchestrate) \
    PTO_LAYOUT_FIELD(pto_run_options, bindings) PTO_LAYOUT_FIELD(pto_run_options, kernels) \
    PTO_LAYOUT_FIELD(pto_run_options, sim) PTO_LAYOUT_FIELD(pto_run_options, n_kernels) \
    PTO_LAYOUT_FIELD(pto_run_options, interruptible) PTO_LAYOUT_FIELD(pto_run_options, execute) \
    PTO_LAYOUT_FIELD(pto_run_options, on_chunk) PTO_LAYOUT_FIELD(pto_run_options, user)

#endif
