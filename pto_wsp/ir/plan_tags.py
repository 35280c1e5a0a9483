"""The tags of plans: see `ir/tags.py`. In JSON they begin with `plan.`, because a plan's items are called like the workload's."""

from __future__ import annotations

from pto_wsp.ir import execution_rules, flow
from pto_wsp.ir import plan as m
from pto_wsp.ir.tags import FLOW_TAGS, KERNEL_TAGS, Tags

PLAN_TAGS = Tags({
    m.FixedExtent: "FixedExtent: dim ~span",
    m.TensorSlot: "TensorSlot: ref reads writes scalars allocated fresh kept fixed",
    m.KernelUse: "KernelUse: kernel unit_inner streamed ragged cost",
    m.Place: "Place: slot role offset extent stride view",
    m.ScalarValue: "ScalarValue: value dtype",
    m.Check: "Check: kind value lower upper subject param ~span",
    m.ElementRead: "Read: slot offset",
    m.Submit: "Submit: site kernel index labels places scalars handle after n_brackets loops checks=note.checks worker cost lane "
              "pool priority position traffic waits=note.waits ~span ?label ?on",
    **{node: texts[1] for node, texts in FLOW_TAGS.items()},
    m.Channel: "Channel: name depth n_payload producers consumers latency ?initial",
    m.Event: "Event: name ref",
    m.BoundAxis: "BoundAxis: name sparse slots rows",
    m.TaskPlan: "TaskPlan: name tensors symbols kernels body n_sites rules infer structure channels events n_streams axes calendar",
    execution_rules.ExecutionRules: "ExecutionRules: n_workers pool_size shared steals calendar starts at_home release release_n "
                                    "release_every "
                          "window window_unit full_window start_after submit_cycles dispatch_cycles retire_cycles bytes_per_cycle columns "
                          "?more ?n_ranks *links ?hop_cycles ?grid_columns ?routes",
    execution_rules.Routes: "Routes: axes buffers",
    execution_rules.WindowRule: "WindowRule: size unit full",
}, {
    m.CheckKind: "CheckKind: INDEX TILE ELEMENT EXTENT CALENDAR RESHAPE ROOM KEY SIZE RANK ROWS",
    execution_rules.TaskField: "Column: LANE POOL PRIORITY POSITION BYTES RANKS",
    execution_rules.WindowUnit: "WindowUnit: TASKS BYTES ENTRIES EDGES READY",
    execution_rules.FullWindow: "FullWindow: STALL ABORT BENCHMARK",
    execution_rules.Release: "Release: IMMEDIATE BATCHED INTERLEAVED RATE",
}, below=KERNEL_TAGS, prefix="plan.", wrappers={flow.Do: (m.Submit,)}, note=m.Precondition, level={
    flow.Leaf: m.Submit, flow.Note: m.Precondition, flow.Channel: int, flow.Event: int, flow.Tensor: int})
