"""One thin file per verb: parse, call one function, render, exit."""
