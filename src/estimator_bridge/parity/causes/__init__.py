"""Rules that name the first cause of a difference between an old script and its rewrite.

- ``cause``: the names of causes.
- ``measures``: numbers of the first steps, and the stage at which the sides part.
- ``table``: all rules in their order; ``table.first_cause`` is what the judge asks for.
"""
