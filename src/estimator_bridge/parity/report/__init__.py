"""A ParityResult for people and programs: tables on the terminal, one offline HTML page, strict JSON.

- ``terminal.print_report``: the compact tables.
- ``page.render_html``: the page with its curves; ``charts`` and ``variables`` are its geometry.
- ``junit.render_junit``, ``markdown.render_markdown``: summaries for CI jobs.
- ``write.write_report``: both files in a folder, whole or not at all; ``write.replace_report``: only over a report.
- ``summary``: the content of all three, and the JSON; ``spelling``: its spelling.

Nothing is imported here, so that a command line with a mistake in it loads neither rich nor jinja2.
"""
