"""python -m argmaxf: the command, where its script is not on the path."""

from argmaxf.cli import main

if __name__ == "__main__":
    main()
