"""From a plan to source files, one folder a language or target."""
