"""Show results: merge them, judge them, and draw tables and pictures of them."""
