"""Formulas of several instructions, lane by lane, as text that reads like arithmetic."""
