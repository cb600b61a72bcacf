"""The same work by this project and by programs of other projects, and the equality of the results."""
