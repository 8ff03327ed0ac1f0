"""The output of ``check``: lines and a table, JSON, SARIF."""
