"""Reports about the whole fleet as JSON data and as an HTML page."""
