"""Widgets: virtual line views of sources, differences, lineages and latencies."""
