"""The files of `python -m pytest -m quick`: about half a minute, and a look at every stage. Their slow tests stay out."""

from __future__ import annotations

QUICK = (
    "api/test_bindings.py", "api/test_error_catalog.py", "api/test_explicit_deps.py",
    "arch/test_model.py",
    "npu/isa/test_instruction.py",
    "architecture/test_layers.py", "architecture/test_private_names.py", "architecture/test_templates.py",
    "artifact/test_cache_key.py", "artifact/test_manifest.py",
    "search/test_space.py",
    "cli/test_cli.py",
    "c_code/syntax/test_printer.py", "c_code/syntax/test_scalars.py", "c_code/test_orchestrator.py",
    "docs/test_errors_page.py", "docs/test_ops_page.py", "docs/test_readme.py",
    "errors/test_mistakes.py",
    "examples/test_examples.py",
    "ir/test_kernel_text.py", "ir/test_workload_text.py",
    "trace/kernel/test_trace.py", "trace/workload/test_trace.py",
    "mesh/test_layouts.py",
    "laws/test_halves.py", "laws/test_pipelines.py", "laws/test_sharing.py",
    "npu/test_examples.py", "npu/mlir/test_examples.py",
    "ops/entries/test_movement.py",
    "passes/test_plan.py", "passes/kernel/test_passes.py", "npu/plan/test_tile_passes.py",
    "timing/test_explain.py",
    "timing/test_simulate.py",
    "run/interpreter/test_run.py", "run/native/test_run.py", "run/record/test_marks.py",
    "schedule/test_schedule.py",
    "targets/test_targets.py",
    "ir/test_dtype.py", "ir/test_view.py",
    "check/test_bounds.py", "check/affine/test_solve.py", "check/races/test_check.py",
    "view/test_timeline.py",
)
# Of long files, one test in so many.
SAMPLED = {"errors/test_mistakes.py": 12, "examples/test_examples.py": 4, "npu/test_examples.py": 3, "npu/mlir/test_examples.py": 3,
           "cli/test_cli.py": 3, "run/native/test_run.py": 3}
