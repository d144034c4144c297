"""Out to model providers: one file for each wire format. Knows nothing of runs, stores or HTTP servers."""
