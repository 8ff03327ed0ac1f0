"""Ends with a failing import."""

import helper
import nowhere.at_all
