"""What a file system says is told from a bug."""

from __future__ import annotations

import errno

import pytest

from seatrial.errors import InvalidInput, StepError, Unavailable, of_disk


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, Unavailable),
        (errno.EDQUOT, Unavailable),
        (errno.EROFS, InvalidInput),
        (errno.EACCES, InvalidInput),
        (errno.EPERM, InvalidInput),
    ],
)
def test_a_disk_that_is_full_may_have_room_later_and_one_that_is_closed_stays_so(
    number: int, kind: type[StepError]
) -> None:
    found = of_disk(OSError(number, "No", "/place"))
    assert type(found) is kind
    assert str(found).startswith("/place cannot be ")


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO, None])
def test_any_other_trouble_is_no_word_of_the_disk(number: int | None) -> None:
    assert of_disk(OSError(number, "no such file")) is None
