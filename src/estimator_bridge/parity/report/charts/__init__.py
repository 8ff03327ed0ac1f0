"""Charts of a report, as SVG."""
