"""The report: the fleet as its refs tell of it, as values (`fleet`, `build`), JSON (`data`) and one page (`page`)."""
