"""Keys of model providers: where each comes from, and where those are kept that `covey login` was given."""
