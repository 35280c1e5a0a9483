"""The `pto-wsp` command."""
