"""The exceptions: their base classes, codes and details, and that they can be pickled."""

from __future__ import annotations

import pickle

import pytest

import pserver
from pserver._error import ERRORS


@pytest.mark.parametrize(
    ("error", "built_in"),
    [
        (pserver.Timeout, TimeoutError),
        (pserver.NoBroker, ConnectionError),
        (pserver.NoHost, ConnectionError),
        (pserver.UnknownParameter, KeyError),
        (pserver.BadShape, ValueError),
        (pserver.BadName, ValueError),
        (pserver.BadDtype, TypeError),
        (pserver.BadIndex, IndexError),
        (pserver.Denied, PermissionError),
        (pserver.Io, OSError),
    ],
)
def test_are_caught_as_the_built_in_ones(
    error: type[pserver.Error], built_in: type[Exception]
) -> None:
    with pytest.raises(built_in, match="why"):
        raise error("why")


@pytest.mark.parametrize("error", ERRORS.values(), ids=lambda error: str(error.code))
def test_each_tells_its_code_and_details_also_after_pickling(error: type[pserver.Error]) -> None:
    raised = error('"w": no\nsuch', {"parameter": "w"})
    for each in (raised, pickle.loads(pickle.dumps(raised))):
        assert type(each) is error
        assert str(each) == '"w": no\nsuch'
        assert each.details == {"parameter": "w"}
        assert getattr(pserver, error.__name__) is error
        assert error.__name__.lower() == each.code.replace("_", "").lower()
    assert str(error()) == ""


def test_some_can_be_retried() -> None:
    assert pserver.Timeout.retryable
    assert not pserver.OutcomeUnknown.retryable
    assert not issubclass(pserver.OutcomeUnknown, TimeoutError)


def test_a_missing_library_is_an_import_error_and_one_of_ours() -> None:
    assert issubclass(pserver.LibraryError, (ImportError,))
    assert issubclass(pserver.LibraryError, pserver.Error)
