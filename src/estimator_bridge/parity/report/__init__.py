"""A ParityResult for people and machines: a table on the terminal, one offline HTML page, strict JSON.

- ``terminal.print_report``: the compact tables.
- ``page.render_html``: the page with its curves; ``plot``, ``ticks``, ``chart``, ``loss_chart``, ``difference_chart`` and
  ``variables`` are its geometry.
- ``write.write_report``: both files in a folder, whole or not at all; ``write.replace_report`` where there is one.
- ``summary``, ``rows``, ``gaps``, ``headline``: what all of them show; ``numerals`` and ``text``: how it is spelled.

Nothing is imported here, so that a command line with a mistake in it loads neither rich nor jinja2.
"""
