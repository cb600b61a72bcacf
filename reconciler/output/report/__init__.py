"""Reports about the whole fleet as values, JSON data and one HTML page."""
