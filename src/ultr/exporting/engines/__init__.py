"""Model files of search engines, one writer each, from one forest."""
