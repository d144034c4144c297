"""Notices to a person who is not watching: a run has ended, or asks something. By webhook, and on the desktop."""
