"""``python -m engdiff``."""

from engdiff.cli.app import main

if __name__ == "__main__":
    main()
