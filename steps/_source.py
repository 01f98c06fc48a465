"""What the later steps read of the model's own folder, as resolve_release handed it on."""

from __future__ import annotations

from pathlib import Path

from seatrial import spec as specs
from seatrial.errors import IntegrityError, InvalidInput, shortened
from seatrial.release import Release
from seatrial.spec import SPEC_FILE, Spec


def spec_of(source: Path, release: Release) -> Spec:
    """The spec in the model's folder, which must be the one that the release was resolved with.

    Raises:
        InvalidInput: It cannot be read.
        IntegrityError: It is another one.
    """
    try:
        text = (source / SPEC_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the source has no readable {SPEC_FILE}: {shortened(error)}") from error
    spec = specs.parse(text, where=f"{release.model_name}/{SPEC_FILE}")
    if spec.model != release.model_name or spec.digest != release.spec_digest:
        raise IntegrityError(
            f"the spec must be {release.model_name}'s, {release.spec_digest}; the source holds {spec.model}'s, "
            f"{spec.digest}"
        )
    return spec
