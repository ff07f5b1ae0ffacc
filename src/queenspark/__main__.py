"""`python -m queenspark` is the `queenspark` command."""

from queenspark.cli import main

if __name__ == "__main__":
    main()
