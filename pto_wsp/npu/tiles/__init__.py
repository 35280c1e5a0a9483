"""The passes of tile programs: memory and synchronisation."""
