"""What crosses the wire: values and codecs, nothing else. Imports nothing else of ours."""
