"""One database for all tests here, emptied before each."""

from tests.support.shared_database import *  # noqa: F403
