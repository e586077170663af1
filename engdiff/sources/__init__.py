"""Where a Capture comes from: one file per source."""
