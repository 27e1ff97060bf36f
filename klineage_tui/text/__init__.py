"""Text as data: made safe, coloured, compared, aligned. Pure functions that know no widget."""
