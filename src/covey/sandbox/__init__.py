"""The wall of the operating system around what a model runs: what a process may read, write and connect to.

`policy` says what must hold, `probe` what this system can do about it, and `launcher` is the program that does it to
itself before it becomes the command. Whether a command is asked about is not decided here.
"""
