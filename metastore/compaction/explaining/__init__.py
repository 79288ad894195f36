"""Why a table or partition is not compacted or not cleaned, and what a compaction would do."""
