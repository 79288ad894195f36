"""Whether the Workers keep up, and how many would."""
