"""Everything an author of tests writes: suites, their servers and policies, and what loads them."""
