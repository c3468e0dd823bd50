"""`python -m fleetline` is the command line."""

from fleetline.entrypoints.cli import main

if __name__ == "__main__":
    main()
