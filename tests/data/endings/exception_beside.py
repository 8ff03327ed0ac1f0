"""Ends with an exception in a module beside it."""

import helper

helper.fail()
