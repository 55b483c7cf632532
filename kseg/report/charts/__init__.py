"""Pictures as SVG, made of values: no style of their own that a page needs, no script, no font."""
