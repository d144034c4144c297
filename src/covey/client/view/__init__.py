"""All that a face shows, as a pure fold of events, answers and what its user did: docs/VIEW_STATE.md."""
