"""`python -m evalfarm` is the `evalfarm` command."""

from evalfarm.cli.main import main

main()
