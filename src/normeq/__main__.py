"""``python -m normeq``: the command line, also under launchers that take a module name."""

from normeq.cli import main

if __name__ == "__main__":
    main()
