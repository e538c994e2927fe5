"""Work for a command in a process of its own: what takes much memory and little time, or must not be waited for."""
