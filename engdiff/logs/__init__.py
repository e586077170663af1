"""Reading start-up logs: bytes to lines, lines to statements, statements to starts. Knows no engine."""
