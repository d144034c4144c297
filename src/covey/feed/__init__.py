"""One ordered stream of events for each workspace, and a cursor into it for each client."""
