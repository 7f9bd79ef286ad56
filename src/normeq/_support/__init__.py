"""What every layer may use: atomic writing, memory, the allocator, tables."""
