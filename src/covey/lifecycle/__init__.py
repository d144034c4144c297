"""The rules: facts in, decisions out. No await, no I/O, no clock; may use protocol values, nothing else of ours."""
