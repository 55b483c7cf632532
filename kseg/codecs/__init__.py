"""Bodies of batches compressed and decompressed: a module for each codec, both directions; and what bounds them."""
