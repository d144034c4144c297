"""The terminal itself: bytes → inputs, frames → bytes, and the modes in between. It knows nothing of what is shown."""
