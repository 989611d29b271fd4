"""``python -m addon_operator`` is the same as the console script."""

from addon_operator.cli.main import main

if __name__ == "__main__":
    main()
