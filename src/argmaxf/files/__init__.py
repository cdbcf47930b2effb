"""Tables in files, larger than memory if need be: read by Polars in streams, written whole."""
