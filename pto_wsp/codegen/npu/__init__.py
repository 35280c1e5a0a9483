"""The NPU targets: a plan to the source tree that the device runtime builds, or to `.pto` text."""
