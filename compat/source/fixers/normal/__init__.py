"""One form for what scripts write in several ways."""
