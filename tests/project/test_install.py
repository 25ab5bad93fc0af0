"""make install: the installed compiler works far from the source tree; manual page and completion fit its options."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    root = tmp_path_factory.mktemp("install")
    subprocess.run(["make", "-s", "install", f"DESTDIR={root}", "PREFIX=/usr"], cwd=ROOT, check=True)
    return root / "usr"


def options(prefix):
    table = subprocess.run([prefix / "bin" / "mtc", "--list-options"], capture_output=True, text=True, check=True).stdout
    return [line.split("\t")[0] for line in table.splitlines()]


def test_installed_compiler(prefix, tmp_path):
    model = tmp_path / "mnist.mt"
    shutil.copy(ROOT / "models" / "mnist.mt", model)
    environment = {name: value for name, value in os.environ.items() if name != "MTC_HOME"}
    subprocess.run([prefix / "bin" / "mtc", model, "--target", "cpu", "-o", tmp_path / "program"], cwd=tmp_path,
                   env=environment, check=True)
    assert "mnist" in subprocess.run([tmp_path / "program", "info"], capture_output=True, text=True, check=True).stdout


def test_manual_page(prefix):
    page = (prefix / "share/man/man1/mtc.1").read_text()
    for option in options(prefix):
        assert option.replace("-", r"\-") in page


def complete(prefix, *words):
    script = prefix / "share/bash-completion/completions/mtc"
    line = " ".join(f"'{word}'" for word in words)
    command = f"compopt() {{ :; }}; source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; " \
              f"_mtc mtc '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    return subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def test_completion(prefix):
    assert complete(prefix, "mtc", "--") == options(prefix)
    assert complete(prefix, "mtc", "--target", "c") == ["cuda", "cpu"]
    assert complete(prefix, "mtc", "--emit", "=", "plan") == ["plan", "plan.svg"]
    assert complete(prefix, "mtc", "--keep", "mod") == ["models"]
    assert "models" in complete(prefix, "mtc", "mod")
    assert complete(prefix, "mtc", "plo") == ["plot"] and complete(prefix, "mtc", "models/mnist.mt", "plo") == []
    assert complete(prefix, "mtc", "plot", "--x", "s") == ["step", "seconds"]
    assert "README.md" in complete(prefix, "mtc", "tokens", "READ") and complete(prefix, "mtc", "READ") == []


def test_uninstall(prefix):
    subprocess.run(["make", "-s", "uninstall", f"DESTDIR={prefix.parent}", "PREFIX=/usr"], cwd=ROOT, check=True)
    assert [path for path in prefix.rglob("*") if path.is_file()] == []
