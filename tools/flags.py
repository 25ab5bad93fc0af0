"""The options of mtc, as `mtc --list-options` tells them."""

import subprocess
from typing import NamedTuple


class Flag(NamedTuple):
    name: str
    letter: str
    argument: str
    group: str
    help: str

    @property
    def choices(self):
        return self.argument.split("|") if "|" in self.argument else []


def flags_of(mtc):
    table = subprocess.run([mtc, "--list-options"], capture_output=True, text=True, check=True).stdout
    return [Flag(*line.split("\t")) for line in table.splitlines()]
