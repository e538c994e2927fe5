"""What is said of conversations, for a terminal and as Markdown."""
