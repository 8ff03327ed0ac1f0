"""The output of ``check``: lines and a table, JSON, SARIF, a page; and what is new since an earlier one."""
