"""Pull requests: drivers for forges behind one small port. The only importer of an HTTP client."""
