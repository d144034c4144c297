"""The machine's file primitives and names, each of them once. Decides nothing, and imports nothing else of ours."""
