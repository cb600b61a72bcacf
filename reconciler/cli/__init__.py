"""The command line: arguments in, text and exit status out; one file per command."""
