"""New partition directories: salvage, compact, slice, reindex, build."""
