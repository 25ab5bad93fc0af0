"""tests/golden/NAME.STAGE is what `mtc --emit=STAGE NAME.mt` prints.

The ending says which stage a golden shows: one small idea each. `NAME.summary` and `NAME.format` show those two outputs.
"""

import pytest

from conftest import ROOT, flags_of

GOLDEN = ROOT / "tests" / "golden"
EXPECTED = sorted(path for path in GOLDEN.iterdir() if path.is_file() and path.suffix not in (".mt", ".md"))


def stage(path):
    model, ending = path.name.split(".", 1)
    flag = f"--{ending}" if ending in ("summary", "format") else f"--emit={ending}"
    return GOLDEN / f"{model}.mt", flag


@pytest.mark.parametrize("path", EXPECTED, ids=lambda path: path.name)
def test_golden(path, mtc, check_text):
    model, flag = stage(path)
    done = mtc(flag, *flags_of(model), model.name, cwd=GOLDEN)
    assert done.returncode == 0, done.stderr
    check_text(path, done.stdout)


def test_every_golden_model_is_compared():
    models = {path.stem for path in GOLDEN.glob("*.mt")}
    assert models == {path.name.split(".")[0] for path in EXPECTED}
