"""tests/errors/NAME.mt is refused with exactly the message in NAME.err, and nothing is written.

Files that only take part in an include are in tests/errors/includes/.
"""

import pytest

from conftest import ROOT, flags_of

ERRORS = ROOT / "tests" / "errors"
MODELS = sorted(ERRORS.glob("*.mt"))
USER_FAULTS = (64, 65, 66, 73)


@pytest.mark.parametrize("model", MODELS, ids=lambda path: path.stem)
def test_error(model, mtc, check_text, tmp_path):
    program = tmp_path / "program"
    flags = flags_of(model)
    target = [] if "--target" in flags else ["--target", "cpu"]
    done = mtc(model.name, "-o", program, *target, *flags, cwd=ERRORS)
    assert done.returncode in USER_FAULTS, f"exit code {done.returncode}\n{done.stderr}"
    assert not program.exists()
    check_text(model.with_suffix(".err"), done.stderr)

