"""`python -m reprocheck`."""

from reprocheck.cli.main import main

if __name__ == "__main__":
    main()
