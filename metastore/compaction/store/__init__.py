"""What compaction remembers: ``queue`` holds requests and history, ``components`` what transactions left to compact or clean."""
