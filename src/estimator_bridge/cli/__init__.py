"""The command line: one file a command, nothing imported before it is needed."""
