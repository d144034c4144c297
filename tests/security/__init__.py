"""Findings of a review, tried against a real server of any source tree."""
