"""The compiler on the command line: `mtc` and `python -m mtc` run the one that the package found, with the same arguments."""

import os
import sys
from typing import NoReturn, Union

from .errors import CompilerMissing
from .toolchain import find_compiler


def main() -> Union[str, NoReturn]:
    """Becomes the compiler; returns why that is not possible."""
    try:
        compiler = find_compiler()
    except CompilerMissing as missing:
        return str(missing)
    if os.path.exists(sys.argv[0]) and os.path.samefile(compiler, sys.argv[0]):  # on PATH, this very script
        return f"{compiler} runs the compiler of its Python package, which has none; run 'make' in the source tree"
    os.execv(compiler, [compiler, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
