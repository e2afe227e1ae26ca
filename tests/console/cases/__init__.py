"""What the console shows and does, page by page."""
