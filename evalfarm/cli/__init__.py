"""The command line: thin commands over the rooms below, and the only place where errors become exit codes."""
