"""Races: may two tasks without an order between them touch the same element, one of them writing?"""
