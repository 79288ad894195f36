"""The differential test: the same generated calls to Hive's own metastores and to ours, answers compared field by field."""
