"""Emit the files of a package from tile programs and plans."""
