"""Statements that need each other in a circle, and how circles over both cores are opened."""
