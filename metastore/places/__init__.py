"""Places on file systems: who has one, and who may get one."""
