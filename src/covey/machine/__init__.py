"""The machine's file primitives, each of them once. Decides nothing, and imports nothing else of ours."""
