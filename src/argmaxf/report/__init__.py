"""From a table of data to a comparison of methods, in words and as a page."""
