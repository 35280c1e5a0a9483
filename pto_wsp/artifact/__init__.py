"""Artifacts: directories with generated C, its library and a manifest; the store that keeps them; the way into C."""
