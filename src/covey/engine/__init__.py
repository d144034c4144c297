"""Turns happen here. It waits for models, tools and the journal, but knows no HTTP and no SQL."""
