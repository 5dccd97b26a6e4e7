"""What was found, on a terminal and as an HTML page."""
