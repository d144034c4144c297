"""What is kept: rows and the event log. `journal.py` is the only writer."""
