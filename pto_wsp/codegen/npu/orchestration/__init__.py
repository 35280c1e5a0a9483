"""From a plan for the NPU to the C++ that submits its tasks."""
