"""`python -m pto_wsp`: the `pto-wsp` command."""

from pto_wsp.cli.main import main

if __name__ == "__main__":
    main()
